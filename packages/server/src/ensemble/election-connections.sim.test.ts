import { SeededRandom, type Connection } from '@zabra/runtime'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ElectionConnections } from './election-connections.ts'
import { ElectionFixture, text } from './testing/election-fixture.ts'

const ids = [1, 2, 3, 4]

/** Runs four servers that send, lose connections and restart at random. Then faults stop, and each sends a last message to each. */
async function runRandomFaults(seed: number) {
  const fixture = new ElectionFixture()
  const random = new SeededRandom(seed)
  fixture.network.chunkBytes = 1 + random.below(64)
  const connections: Connection[] = []
  const connect = fixture.network.connect.bind(fixture.network)
  fixture.network.connect = async (to) => {
    const connection = await connect(to)
    connections.push(connection)
    return connection
  }
  const servers = new Map<number, ElectionConnections>()
  for (const id of ids) servers.set(id, await fixture.startedConnections(id))
  const randomId = (): number => ids[random.below(ids.length)]!
  for (let step = 0; step < 60; step++) {
    const [one, other] = [randomId(), randomId()]
    const action = random.below(10)
    if (action < 6 && one !== other) servers.get(one)!.send(other, text(`${step}`))
    else if (action < 9) connections[random.below(connections.length + 1)]?.destroy()
    else {
      await servers.get(one)!.close()
      servers.set(one, await fixture.startedConnections(one))
    }
    await fixture.advance(random.below(3) === 0 ? random.below(2000) : 0)
  }
  for (const id of ids)
    for (const other of ids) if (id !== other) servers.get(id)!.send(other, text(`last of ${id}`))
  for (let i = 0; i < 60; i++) await fixture.advance(500)
  return { fixture, servers: [...servers.values()], open: connections.filter(isOpen).length }
}

/** Whether a connection is open: a closed one buffers no bytes that are written to it. */
function isOpen(connection: Connection): boolean {
  connection.pause()
  const before = connection.bufferedBytes
  connection.write(Uint8Array.of(0))
  return connection.bufferedBytes > before
}

it('under random faults each pair of servers ends with one connection and the last messages', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(2 ** 31 - 1), async (seed) => {
      const { fixture, servers, open } = await runRandomFaults(seed)
      for (const [index, server] of servers.entries())
        expect(server.connected).toEqual(ids.filter((id) => id !== ids[index]))
      for (const id of ids)
        for (const other of ids)
          if (id !== other) expect(fixture.received).toContain(`${other} from ${id}: last of ${id}`)
      expect(open).toBe(6)
      expect(fixture.timers).toEqual([])
    }),
    { numRuns: 100, endOnFailure: true },
  )
})
