import { resolve } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { describeWith, python } from './harness/available.ts'
import { Client } from './harness/client.ts'
import { run } from './harness/servers.ts'

const script = resolve(import.meta.dirname, '../python/ensemble.py')

let ensemble: Ensemble | undefined
afterEach(async () => {
  await ensemble?.[Symbol.asyncDispose]()
  ensemble = undefined
})

/** Writes through each member and reads at every other one, with kazoo. */
async function throughAll(label: string): Promise<void> {
  const addresses = ensemble!.alive.map((id) => ensemble!.member(id).address)
  const { code, output } = await run(python, [script, label, ...addresses], { timeoutMs: 60_000 })
  if (code !== 0) throw new Error(`kazoo ended with ${code}:\n${output.slice(-3000)}`)
}

describeWith(['kazoo'], 'three servers of ours', () => {
  it('take writes through each member, and go on when their leader is killed and comes back', async () => {
    ensemble = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'] })
    await throughAll('first')
    const leader = await ensemble.leader()
    expect(leader).toBe(3)
    const session = await ensemble.connect(1)
    await session.create('/kept', 'by its session', 1)

    await ensemble.kill(leader)
    expect(await ensemble.leader()).not.toBe(leader)
    await throughAll('second')
    const resumed = await Client.connect(ensemble.member(2).port, { resume: session.session })
    expect((await resumed.get('/kept')).data?.toString()).toBe('by its session')

    await ensemble.start(leader)
    await throughAll('third')
    const dumps = await ensemble.dumps()
    expect(dumps.get(1)).toEqual(dumps.get(2))
    expect(dumps.get(3)).toEqual(dumps.get(2))
    expect(Object.keys(dumps.get(3)!)).toContain('/kept')

    // The session ends at another member than it began at, and its node with it everywhere.
    await resumed.close()
    await until(
      'the end of the node',
      async () => !(await ensemble!.with(3, (client) => client.exists('/kept'))),
    )
  })

  it('hand leadership over when their leader is asked to stop', async () => {
    ensemble = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'] })
    await throughAll('before')
    const leader = await ensemble.leader()
    const begun = Date.now()
    await ensemble.stop(leader)
    await until('a write', () =>
      ensemble!.with(1, (client) =>
        client.set('/before', 'after').then(
          () => true,
          () => false,
        ),
      ),
    )
    expect(Date.now() - begun).toBeLessThan(4000)
    await ensemble.start(leader)
    const dumps = await ensemble.dumps()
    expect(dumps.get(leader)).toEqual(dumps.get(1))
  })
})
