import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'

setupEachTest({ sessionTimeoutMs: 3000 })

it('the last zxid that a client has seen survives the expiry of its session', async () => {
  await world.outcome(client.create('/a'))
  world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(4500)
  delete world.faults.open
  const seen: bigint[] = []
  world.faults.toServer = (chunk) => {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    // protocolVersion 0, then lastZxidSeen: only the first frame of a connection looks like this.
    if (chunk.length >= 44 && view.getInt32(4) === 0) seen.push(view.getBigInt64(8))
    return chunk
  }
  await world.advance(10_000)
  expect(client.session.generation).toBe(2)
  expect(seen.length).toBeGreaterThan(0)
  expect(seen[0]).toBeGreaterThan(0n)
})
