import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('a reply longer than maxFrameBytes rejects its request and does not break every later connection', async () => {
  const writer = await world.client()
  await world.outcome(writer.create('/big', { data: new Uint8Array(5000) }))
  const client = await world.client({ maxFrameBytes: 2048 })
  const states = world.states(client)
  const connections = world.connections.length
  let settled: unknown
  client.getData('/big').catch((error: unknown) => (settled = error))
  await world.advance(60_000)
  expect({ settled: settled !== undefined, reconnects: world.connections.length - connections }).toEqual({
    settled: true,
    reconnects: 1,
  })
  void states
})
