import { afterEach, beforeEach, expect, it } from 'vitest'
import { World } from '../testdata/world.ts'
import type { Client } from '../types.ts'

let world: World
let client: Client
beforeEach(async () => {
  world = await World.start()
  client = await world.client({ sessionTimeout: 3000 })
})
afterEach(() => world.end())

it('connecting after expiry bears the number of the new session', async () => {
  const seen: [string, number][] = []
  void (async () => {
    for await (const { state, sessionEpoch } of client.states()) seen.push([state, sessionEpoch])
  })()
  world.interference.open = () => {
    throw new Error('down')
  }
  world.wire.cut()
  await world.advance(5000)
  delete world.interference.open
  await world.advance(10_000)
  expect(seen).toEqual([
    ['connected', 1],
    ['suspended', 1],
    ['expired', 1],
    ['connecting', 2],
    ['connected', 2],
  ])
})
