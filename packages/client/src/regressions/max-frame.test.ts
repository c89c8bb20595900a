import { expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'

it('an answer longer than maxFrame fails the request that asked for it, not every connection for ever', async () => {
  const world = await ManualWorld.start()
  const writer = await world.client()
  await world.outcome(writer.create('/big', new Uint8Array(5000)))
  const client = await world.client({ maxFrame: 2048 })
  const states = world.states(client)
  const wires = world.connections.length
  let settled: unknown
  client.getData('/big').catch((error: unknown) => (settled = error))
  await world.advance(60_000)
  expect({ settled: settled !== undefined, reconnects: world.connections.length - wires }).toEqual({
    settled: true,
    reconnects: 1,
  })
  void states
  await world.end()
})
