import { expect, it } from 'vitest'
import { bytes, ManualWorld } from '../testing/manual-world.ts'

it('a rejected SetWatches ends its one-shot watches, which could never fire', async () => {
  const world = await ManualWorld.start()
  const client = await world.client()
  const other = await world.client()
  await world.outcome(client.create('/a', bytes('1')))
  const watch = await world.outcome(client.watchOnce('/a', 'data'))
  let settled = false
  watch.fired.then(
    () => (settled = true),
    () => (settled = true),
  )
  let refused = 0
  world.faults.toServer = (chunk) => {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (chunk.length > 12 && view.getInt32(4) === -8 && refused++ === 0) {
      // The server never receives it and replies with THROTTLEDOP, as Apache's may.
      const connection = world.lastConnection
      const reply = new Uint8Array(20)
      const r = new DataView(reply.buffer)
      r.setInt32(0, 16)
      r.setInt32(4, -8)
      r.setInt32(16, -127)
      world.clock.immediate(() => connection.deliver(reply))
      return undefined
    }
    return chunk
  }
  world.connections[0]!.cut()
  await world.advance(3000)
  expect(refused).toBeGreaterThan(0)
  await world.outcome(other.setData('/a', bytes('2')))
  await world.advance(20_000)
  expect(settled).toBe(true)
  await world.end()
})
