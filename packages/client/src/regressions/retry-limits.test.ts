import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'

setupEachTest({ sessionTimeoutMs: 3000 })

it('maxElapsedMs also limits waiting for a connection', async () => {
  const options = { retry: { maxElapsedMs: 1000 } }
  const done = client.getData('/', options)
  await world.outcome(done)
  world.faults.toServer = () => undefined
  let failed = false
  client.getData('/', options).catch(() => (failed = true))
  await world.settle()
  delete world.faults.toServer
  world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(2500)
  delete world.faults.open
  expect(failed).toBe(true)
})
