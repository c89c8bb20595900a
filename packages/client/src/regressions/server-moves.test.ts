import { afterEach, beforeEach, expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'

let world: ManualWorld
beforeEach(async () => {
  world = await ManualWorld.start()
})
afterEach(() => world.end())

it('a move that the client decides upon does not wait as after a failure', async () => {
  const waits: number[] = []
  for (let i = 0; i < 10; i++) {
    const client = await world.client({ servers: 'a:2181', sessionTimeout: 30_000 })
    await world.outcome(client.updateServerList('b:2181'))
    const start = world.clock.monotonic()
    while (client.state !== 'connected') await world.advance(50)
    waits.push(world.clock.monotonic() - start)
  }
  expect(Math.max(...waits)).toBeLessThanOrEqual(50)
})

it('close ends the session while the client waits to move, also without an offline queue', async () => {
  const client = await world.client({ offlineQueue: 0 })
  const other = await world.client()
  await world.outcome(client.create('/e', undefined, { mode: 'ephemeral' }))
  const wire = world.connections[0]!
  const held: Uint8Array[] = []
  world.faults.toClient = (chunk, from) => (from === wire ? (held.push(chunk.slice()), undefined) : chunk)
  client.getData('/').catch(() => {})
  await world.settle()
  await world.outcome(client.updateServerList('b:2181'))
  void client.close()
  await world.settle()
  delete world.faults.toClient
  for (const chunk of held) wire.deliver(chunk)
  await world.advance(2500)
  expect(client.state).toBe('closed')
  expect(await world.outcome(other.exists('/e'))).toBeUndefined()
})
