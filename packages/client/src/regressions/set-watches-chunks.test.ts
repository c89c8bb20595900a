import { Reader } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { client, other, setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest({}, {})

it('a connection that breaks between two SetWatches replies loses no watch of the second request', async () => {
  await world.outcome(client.create('/last', { data: bytes('1') }))
  // About 160 KiB of paths: two requests. "/last" is registered last, so the second request restores it.
  await world.outcome(client.createMissing(['/p']))
  const name = 'x'.repeat(4000)
  for (let i = 0; i < 40; i++) {
    await world.outcome(client.create(`/p/${name}${i}`))
    await world.outcome(client.watchOnce(`/p/${name}${i}`, 'data'))
  }
  const watch = await world.outcome(client.watchOnce('/last', 'data'))
  let fired = false
  void watch.fired.then(() => (fired = true))
  const first = world.connections[0]!
  first.cut()
  await world.settle()
  await world.outcome(other.setData('/last', bytes('2')))
  // On the next connection only the reply to the first request is delivered.
  let cut = false
  world.faults.toClient = (chunk, connection) => {
    if (connection === world.connections[1] || cut) return chunk
    for (let at = 0; at + 20 <= chunk.length;) {
      const reader = new Reader(chunk, at)
      const length = reader.int()
      if (reader.int() === -8) {
        cut = true
        connection.deliver(chunk.slice(0, at + 4 + length))
        connection.cut()
        return undefined
      }
      at += 4 + length
    }
    return chunk
  }
  await world.advance(5000)
  expect(cut).toBe(true)
  expect(client.state).toBe('connected')
  expect(fired).toBe(true)
})
