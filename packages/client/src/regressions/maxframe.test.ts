import { expect, it } from 'vitest'
import { World } from '../testdata/world.ts'

it('an answer longer than maxFrame fails the request that asked for it, not every connection for ever', async () => {
  const world = await World.start()
  const writer = await world.client()
  await world.outcome(writer.create('/big', new Uint8Array(5000)))
  const client = await world.client({ maxFrame: 2048 })
  const states = world.states(client)
  const wires = world.wires.length
  let settled: unknown
  client.getData('/big').catch((error: unknown) => (settled = error))
  await world.advance(60_000)
  expect({ settled: settled !== undefined, reconnects: world.wires.length - wires }).toEqual({
    settled: true,
    reconnects: 1,
  })
  void states
  await world.end()
})
