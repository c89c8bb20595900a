import { NodeDisk, nodeCompression } from '@zabra/runtime/node'
import { silentLogger } from '@zabra/runtime'
import { forceMembers, parseConfiguration } from '@zabra/server/files'
import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'

describeWith([], 'an ensemble of Zabra servers that has lost its quorum', () => {
  it('goes on with one member, and a lost one that returns on its data leads nothing', async () => {
    const ensemble = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'] })
    await ensemble.withClient(1, (client) => client.create('/kept', 'data'))
    await ensemble.waitUntilSynced()
    await ensemble.kill(1, 2, 3)
    const dataDir = ensemble.folder(3)
    const lines = ensemble.ids.map((id) => `server.${id}=127.0.0.1:${ensemble.portsOf(id).join(':')}`)
    await forceMembers({ dataDir, dataLogDir: dataDir }, [3], {
      disk: new NodeDisk(),
      compression: nodeCompression,
      logger: silentLogger,
      known: parseConfiguration(lines.join('\n')),
    })

    await ensemble.start(3)
    await ensemble.withClient(3, (client) => client.create('/later', 'data'))
    // It resolves only if the member serves, which it need not.
    const returned = ensemble.start(1).catch(() => {})
    await until('the member that returned', async () => ensemble.running.includes(1))
    for (let i = 0; i < 20; i++) {
      await ensemble.withClient(3, (client) => client.create(`/write-${i}`, 'data'))
      expect(await ensemble.modeOf(1)).not.toBe('leader')
    }
    expect(await ensemble.modeOf(3)).toMatch(/^(?:leader|standalone)$/)
    await ensemble.kill(1)
    await returned
  })
})
