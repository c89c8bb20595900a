import { SeededRandom, type Connection } from '@zabra/runtime'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ElectionConnections } from './election-connections.ts'
import { ElectionFixture, text } from './testing/election-fixture.ts'

const ids = [1, 2, 3, 4]

/** Four servers that send, lose connections and start again at random; then a calm, and a last word of each to each. */
async function play(
  seed: number,
): Promise<{ rig: ElectionFixture; servers: ElectionConnections[]; open: number }> {
  const rig = new ElectionFixture()
  const random = new SeededRandom(seed)
  rig.network.chunkBytes = 1 + random.below(64)
  const wires: Connection[] = []
  const connect = rig.network.connect.bind(rig.network)
  rig.network.connect = async (to) => {
    const wire = await connect(to)
    wires.push(wire)
    return wire
  }
  const servers = new Map<number, ElectionConnections>()
  for (const id of ids) servers.set(id, await rig.startedConnections(id))
  const any = (): number => ids[random.below(ids.length)]!
  for (let step = 0; step < 60; step++) {
    const [one, other] = [any(), any()]
    const what = random.below(10)
    if (what < 6 && one !== other) servers.get(one)!.send(other, text(`${step}`))
    else if (what < 9) wires[random.below(wires.length + 1)]?.destroy()
    else {
      await servers.get(one)!.close()
      servers.set(one, await rig.startedConnections(one))
    }
    await rig.advance(random.below(3) === 0 ? random.below(2000) : 0)
  }
  for (const id of ids)
    for (const other of ids) if (id !== other) servers.get(id)!.send(other, text(`last of ${id}`))
  for (let i = 0; i < 60; i++) await rig.advance(500)
  return { rig, servers: [...servers.values()], open: wires.filter(isOpen).length }
}

/** A connection that is closed takes no more bytes, which shows in none being counted for its reader. */
function isOpen(wire: Connection): boolean {
  wire.pause()
  const before = wire.bufferedBytes
  wire.write(Uint8Array.of(0))
  return wire.bufferedBytes > before
}

it('whatever breaks, each two servers come to one connection, and the last words arrive', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(2 ** 31 - 1), async (seed) => {
      const { rig, servers, open } = await play(seed)
      for (const [index, server] of servers.entries())
        expect(server.connected).toEqual(ids.filter((id) => id !== ids[index]))
      for (const id of ids)
        for (const other of ids)
          if (id !== other) expect(rig.received).toContain(`${other} from ${id}: last of ${id}`)
      expect(open).toBe(6)
      expect(rig.timers).toEqual([])
    }),
    { numRuns: 100, endOnFailure: true },
  )
})
