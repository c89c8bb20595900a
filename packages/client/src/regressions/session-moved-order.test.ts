import { expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'

it('requests keep their order when the first of several is answered with SessionMoved', async () => {
  const world = await ManualWorld.start()
  const client = await world.client()
  let moved = 0
  // The requests do not reach the server; the test replies to the first with SESSIONMOVED (-118).
  world.faults.toServer = (chunk) => {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const xid = view.getInt32(4)
    if (xid <= 0 || moved > 0 || chunk.length < 12) return chunk
    moved++
    const connection = world.lastConnection
    const reply = new Uint8Array(20)
    const r = new DataView(reply.buffer)
    r.setInt32(0, 16)
    r.setInt32(4, xid)
    r.setInt32(16, -118)
    world.clock.immediate(() => connection.deliver(reply))
    return undefined
  }
  const parent = client.create('/p', undefined, { idempotent: true })
  const child = client.create('/p/c', undefined, { idempotent: true })
  const results = await world.within(10_000, Promise.allSettled([parent, child]))
  expect(moved).toBe(1)
  expect(
    results.map((one) => (one.status === 'fulfilled' ? one.value.path : (one.reason as Error).name)),
  ).toEqual(['/p', '/p/c'])
  await world.end()
})
