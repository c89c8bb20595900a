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

it('maxElapsed also ends waiting for a connection', async () => {
  const options = { retry: { maxElapsed: 1000 } }
  const done = client.getData('/', options)
  await world.outcome(done)
  world.interference.toServer = () => undefined
  let failed = false
  client.getData('/', options).catch(() => (failed = true))
  await world.settle()
  delete world.interference.toServer
  world.interference.open = () => {
    throw new Error('down')
  }
  world.wire.cut()
  await world.advance(2500)
  delete world.interference.open
  expect(failed).toBe(true)
})
