import { afterEach, beforeEach, expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'
import type { Client } from '../client-api.ts'

let world: ManualWorld
let client: Client
beforeEach(async () => {
  world = await ManualWorld.start()
  client = await world.client({ sessionTimeout: 3000 })
})
afterEach(() => world.end())

it('maxElapsed also limits waiting for a connection', async () => {
  const options = { retry: { maxElapsed: 1000 } }
  const done = client.getData('/', options)
  await world.outcome(done)
  world.faults.toServer = () => undefined
  let failed = false
  client.getData('/', options).catch(() => (failed = true))
  await world.settle()
  delete world.faults.toServer
  world.faults.open = () => {
    throw new Error('down')
  }
  world.lastConnection.cut()
  await world.advance(2500)
  delete world.faults.open
  expect(failed).toBe(true)
})
