import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('a move to another server begins without a reconnect delay', async () => {
  const waits: number[] = []
  for (let i = 0; i < 10; i++) {
    const client = await world.client({ servers: 'a:2181', sessionTimeoutMs: 30_000 })
    await world.outcome(client.updateServerList('b:2181'))
    const start = world.clock.monotonic()
    while (client.state !== 'connected') await world.advance(50)
    waits.push(world.clock.monotonic() - start)
  }
  expect(Math.max(...waits)).toBeLessThanOrEqual(50)
})

it('close ends the session during a pending move, also without an offline queue', async () => {
  const client = await world.client({ offlineQueue: 0 })
  const other = await world.client()
  await world.outcome(client.create('/e', { mode: 'ephemeral' }))
  const connection = world.connections[0]!
  const held: Uint8Array[] = []
  world.faults.toClient = (chunk, from) =>
    from === connection ? (held.push(chunk.slice()), undefined) : chunk
  client.getData('/').catch(() => {})
  await world.settle()
  await world.outcome(client.updateServerList('b:2181'))
  void client.close()
  await world.settle()
  delete world.faults.toClient
  for (const chunk of held) connection.deliver(chunk)
  await world.advance(2500)
  expect(client.state).toBe('closed')
  expect(await world.outcome(other.exists('/e'))).toBeUndefined()
})
