import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { freePort } from './harness/ports.ts'
import { describeWith } from './harness/requirements.ts'

describeWith(['apache'], 'an ensemble that migrates from Apache ZooKeeper', () => {
  it('finalizes no feature level while a member runs it, and refuses that member afterwards', async () => {
    const ports = await Promise.all([freePort(), freePort(), freePort()])
    const ensemble = await Ensemble.start({
      kinds: ['apache-3.8', 'zabra', 'zabra'],
      configOf: (id, kind): Record<string, string | number> =>
        kind === 'zabra'
          ? {
              'admin.enableServer': 'true',
              'admin.serverPort': ports[id - 1]!,
              'admin.role.operate': 'ip:127.0.0.1',
            }
          : {},
    })
    const finalize = async (): Promise<{ status: number; text: string }> => {
      const url = `http://127.0.0.1:${ports[(await ensemble.leader()) - 1]}/api/v1/cluster/finalize`
      const answer = await fetch(url, { method: 'POST' })
      return { status: answer.status, text: await answer.text() }
    }
    if ((await ensemble.leader()) === 1) {
      await ensemble.stop(1)
      await ensemble.leader()
      await ensemble.start(1)
    }
    let answer = { status: 0, text: '' }
    await until('the refusal', async () => {
      answer = await finalize()

      return answer.text.includes('server 1')
    })
    expect([answer.status, answer.text]).toEqual([
      409,
      expect.stringContaining('server 1 runs Apache ZooKeeper'),
    ])

    await ensemble.replace(1, 'zabra')
    await until('the finalized level', async () => (await finalize()).status === 200)
    await ensemble.withClient(2, (client) => client.create('/final'))

    // The server of Apache ZooKeeper starts on its folder of today, and no member takes it.
    const refusals = (): number[] =>
      [2, 3].filter((id) =>
        ensemble
          .member(id)
          .output.includes('server 1 runs Apache ZooKeeper, and this ensemble was finalized'),
      )
    const started = ensemble.replace(1, 'apache-3.8').then(
      () => 'serves',
      () => 'does not serve',
    )
    await until('the refusal of both', () => Promise.resolve(refusals().length === 2))
    expect(await ensemble.modeOf(1)).toBeUndefined()
    await ensemble.withClient(3, (client) => client.create('/after'))
    await ensemble.member(1).kill()
    expect(await started).toBe('does not serve')
  })
})
