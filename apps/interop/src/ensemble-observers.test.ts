import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectSameTrees, writeThroughAll } from './ensemble/same-trees.ts'
import { followMaster, waitForMaster } from './ensemble/observer-master.ts'
import { Ensemble, sync } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import { bytes } from './harness/bytes.ts'
import { Client, ConnectionLost, createBody } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { freePort } from './harness/ports.ts'
import { reference, type Kind } from './harness/servers.ts'

let ensemble: Ensemble

/** Starts voters 1 to 3, of which 3 leads and only 1 is an observer master, and the observers 4 and 5. */
async function start(kinds: readonly Kind[], dispose?: (remove: () => Promise<void>) => void): Promise<void> {
  const port = await freePort()
  ensemble = await Ensemble.plan(
    {
      kinds,
      observers: [4, 5],
      hostOf: (id) => `127.0.0.${id}`,
      configOf: (id) => (id === 1 || id > 3 ? { observerMasterPort: port } : {}),
    },
    dispose,
  )
  // In this order, so that 3 leads and 1 runs before the observers connect.
  await ensemble.start(2, 3)
  await ensemble.start(1)
  await ensemble.start(4, 5)
}

async function expectOldConnectionsToBeRefused(): Promise<void> {
  for (const id of [4, 5]) await followMaster(ensemble, id, 1)
  let before = await ensemble.connect(4)
  const resume = before.session
  await before.create('/begun', '')
  for (const [round, member] of [1, 5, 4, 1, 5, 1].entries()) {
    const next = await Client.connect(ensemble.member(member).port, { resume })
    const late = await before.request(op.create, createBody(`/late-${round}`, ''), 1000 + round).then(
      ({ err }) => (err === 0 ? 'done' : 'refused'),
      (error: unknown) => (error instanceof ConnectionLost ? 'refused' : error),
    )
    expect(late, `round ${round}`).toBe('refused')
    await sync(next)
    expect((await next.request(op.exists, bytes().str(`/late-${round}`).bool(false).done())).err).toBe(-101)
    await next.create(`/new-${round}`, '')
    before.drop()
    before = next
  }
  await before.close()
  await expectSameTrees(ensemble)
}

async function expectObserversToBeServed(): Promise<void> {
  expect(await ensemble.leader()).toBe(3)
  for (const id of [4, 5]) await followMaster(ensemble, id, 1)
  await writeThroughAll(ensemble, 'first')
  await expectSameTrees(ensemble)
  // The observers are down while others write, and restart.
  await ensemble.kill(4, 5)
  await writeThroughAll(ensemble, 'without')
  await ensemble.start(4, 5)
  for (const id of [4, 5]) await followMaster(ensemble, id, 1)
  await writeThroughAll(ensemble, 'again')
  await expectSameTrees(ensemble)
  // After a new leader election the follower serves its observers again.
  await ensemble.kill(3)
  await ensemble.leader()
  await ensemble.start(3)
  for (const id of [4, 5]) await followMaster(ensemble, id, 1)
  await writeThroughAll(ensemble, 'later')
  await expectSameTrees(ensemble)
}

const MOVED = 'rejects writes over the old connection of a moved session'
const SERVED = 'serves observers of both kinds'

describeWith(['apache', 'kazoo'], 'an observer master', () => {
  describe('zabra, beside apache-3.8 and the leader apache-3.8,', () => {
    let remove = async (): Promise<void> => {}
    const kinds: readonly Kind[] = ['zabra', reference, reference, 'zabra', reference]
    beforeAll(() => start(kinds, (action) => (remove = action)), 120_000)
    afterAll(() => remove())

    // Runs first: the next test changes the leader of the same ensemble.
    it(MOVED, expectOldConnectionsToBeRefused)
    it(SERVED, expectObserversToBeServed)
  })

  it.each<readonly Kind[]>([
    ['zabra', 'zabra', 'zabra', reference, reference],
    [reference, reference, 'zabra', 'zabra', reference],
  ])(`%s, beside %s and the leader %s, ${SERVED}`, async (...kinds) => {
    await start(kinds)
    await expectObserversToBeServed()
  })

  it(`zabra, beside zabra and the leader zabra, ${MOVED}`, async () => {
    await start(['zabra', 'zabra', 'zabra', 'zabra', reference])
    await expectOldConnectionsToBeRefused()
  })

  it('is killed, and Zabra observers follow the leader', async () => {
    await start([reference, 'zabra', 'zabra', 'zabra', 'zabra'])
    for (const id of [4, 5]) await followMaster(ensemble, id, 1)
    await ensemble.kill(1)
    for (const id of [4, 5]) await waitForMaster(ensemble, id, 3)
    await writeThroughAll(ensemble, 'at the leader')
    await expectSameTrees(ensemble)
  })
})
