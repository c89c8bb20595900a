import { afterEach, expect, it } from 'vitest'
import { expectSameTrees, throughAll } from './ensemble/alike.ts'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { describeWith } from './harness/available.ts'
import { word } from './harness/client.ts'
import { freePort, reference, type Kind } from './harness/servers.ts'

let ensemble: Ensemble | undefined
afterEach(async () => {
  await ensemble?.[Symbol.asyncDispose]()
  ensemble = undefined
})

/** Whom an observer follows, in its own words. */
async function masterOf(id: number): Promise<number> {
  const text = await word(ensemble!.member(id).port, 'mntr', { timeoutMs: 2000 }).catch(() => '')
  return Number(/zk_observer_master_id\t(\d+)/.exec(text)?.[1])
}

const mastered = (id: number, master: number): Promise<void> =>
  until(`observer ${id} behind ${master}`, async () => (await masterOf(id)) === master, 60_000)

/** Voters 1 to 3, of whom 3 leads and only 1 keeps observers up to date; the observers 4 and 5. */
async function start(kinds: readonly Kind[]): Promise<void> {
  const port = await freePort()
  ensemble = await Ensemble.plan({
    kinds,
    observers: [4, 5],
    hostOf: (id) => `127.0.0.${id}`,
    configOf: (id) => (id === 1 || id > 3 ? { observerMasterPort: port } : {}),
  })
  // One after the other, so that 3 leads and 1 is there when observers come.
  await ensemble.start(2, 3)
  await ensemble.start(1)
  await ensemble.start(4, 5)
}

describeWith(['apache', 'kazoo'], 'a follower that keeps observers up to date', () => {
  it.each<readonly Kind[]>([
    ['zabra', reference, reference, 'zabra', reference],
    ['zabra', 'zabra', 'zabra', reference, reference],
    [reference, reference, 'zabra', 'zabra', reference],
  ])('as %s, with %s and the leader %s, serves observers of both kinds', async (...kinds) => {
    await start(kinds)
    expect(await ensemble!.leader()).toBe(3)
    for (const id of [4, 5]) await mastered(id, 1)
    await throughAll(ensemble!, 'first')
    await expectSameTrees(ensemble!)
    // They lag behind it for a while, and come back.
    await ensemble!.kill(4, 5)
    await throughAll(ensemble!, 'without')
    await ensemble!.start(4, 5)
    for (const id of [4, 5]) await mastered(id, 1)
    await throughAll(ensemble!, 'again')
    await expectSameTrees(ensemble!)
    // A new leader means a new role for the follower, and for its observers.
    await ensemble!.kill(3)
    await ensemble!.leader()
    await ensemble!.start(3)
    for (const id of [4, 5]) await mastered(id, 1)
    await throughAll(ensemble!, 'later')
    await expectSameTrees(ensemble!)
  })

  it('sends our observers to the leader when it is gone', async () => {
    await start([reference, 'zabra', 'zabra', 'zabra', 'zabra'])
    for (const id of [4, 5]) await mastered(id, 1)
    await ensemble!.kill(1)
    for (const id of [4, 5]) await mastered(id, 3)
    await throughAll(ensemble!, 'at the leader')
    await expectSameTrees(ensemble!)
  })
})
