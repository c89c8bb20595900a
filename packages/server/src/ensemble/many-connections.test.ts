import { expect, it } from 'vitest'
import { ITEMS_PER_TURN } from '../connections/in-slices.ts'
import { serviceOf, watchFalls } from '../testing/many-connections.ts'
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
