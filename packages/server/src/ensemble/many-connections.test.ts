import { OpCode, writeMultiRequest } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { ITEMS_PER_TURN } from '../core/in-slices.ts'
import { interleavePromises, serviceOf, watchFalls } from '../testing/many-connections.ts'
import type { RawClient } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

const MANY = 250
const settings = { maxClientCnxns: 0, maxSessionTimeoutMs: 600_000 }
const timeout = 600_000

it('a member that loses its leader closes a hundred connections in a turn, whose sessions can be resumed', async () => {
  const ensemble = await Ensemble.start(3, settings)
  const leader = ensemble.leader!
  const id = leader === 1 ? 2 : 1
  const clients: RawClient[] = []
  while (clients.length < MANY) clients.push(await ensemble.client(id, { timeout }))
  const { connections } = serviceOf(ensemble.server(id))
  const mostClosed = watchFalls(ensemble.clock, () => connections.size)
  await ensemble.member(leader).crash()
  await ensemble.until('another leader', () => clients.every(({ closed }) => closed))
  await ensemble.allServe()
  expect([connections.size, mostClosed() <= ITEMS_PER_TURN]).toEqual([0, true])
  for (const { session } of [clients[0]!, clients.at(-1)!]) {
    const resumed = await ensemble.client(id, { resume: session!, timeout })
    expect(resumed.session!.sessionId).toBe(session!.sessionId)
  }
})

it('a follower answers reads of a hundred connections in a turn after a large transaction, none of which sees a later write', async () => {
  const ensemble = await Ensemble.start(3, settings)
  const { clock } = ensemble
  const id = ensemble.leader === 1 ? 2 : 1
  const large = await ensemble.client(id, { timeout })
  const clients: RawClient[] = []
  while (clients.length < MANY) clients.push(await ensemble.client(id, { timeout }))
  const { deferredReads, tree } = serviceOf(ensemble.server(id))
  interleavePromises(clock)
  const mostProcessed = watchFalls(clock, () => deferredReads.size)
  const immediate = clock.immediate.bind(clock)
  let isSent = false
  clock.immediate = (action) =>
    immediate(() => {
      action()
      if (isSent || !tree.isApplying) return
      isSent = true
      for (const [index, client] of clients.entries())
        client.batch(() => {
          client.read(1, OpCode.exists, `/later-${index}`)
          client.create(2, `/later-${index}`)
        })
    })
  large.ask(1, OpCode.multi, (w) =>
    writeMultiRequest(
      w,
      Array.from({ length: 20_000 }, () => ({ type: OpCode.check, path: '/', version: -1 }) as const),
    ),
  )
  for (let waited = 0; clients.some(({ frames }) => frames.length < 2) && waited < 100; waited++)
    await ensemble.advance(10)
  expect([isSent, mostProcessed()]).toEqual([true, ITEMS_PER_TURN])
  for (const client of clients) expect(client.takeReceived()).toEqual(['1:-101', '2:0'])
})
