import { expect, it } from 'vitest'
import { Lease } from './lease.ts'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('lastContact is when the newest answered request was sent, not when its reply arrived', async () => {
  const client = await world.client()
  const sentAt = world.clock.monotonic()
  await world.outcome(client.exists('/'))
  expect(client.lastContact).toBe(sentAt)
  await world.advance(4100)
  expect(client.lastContact).toBeGreaterThanOrEqual(sentAt + 4000)
})

it('the reply to a ping sent before a pause proves nothing about the time after it', async () => {
  const client = await world.client({ sessionTimeoutMs: 30_000 })
  await world.outcome(client.exists('/'))
  // A ping is sent and its reply is in transit when the process stops.
  const held: Uint8Array[] = []
  world.faults.toClient = (chunk) => {
    held.push(chunk)
    return undefined
  }
  await world.advance(10_050)
  expect(held).toHaveLength(1)
  const { leaseHorizon } = client
  delete world.faults.toClient
  const { lastConnection: connection } = world
  world.faults.toServer = () => undefined
  // All overdue timers fire at once, and then the reply is read.
  world.clock.after(0, 'pause', () => world.clock.advance(40_000))
  world.clock.advance(0)
  for (const chunk of held) connection.deliver(chunk)
  await world.settle()
  expect(client.leaseHorizon).toBeLessThan(leaseHorizon + 11_000)
  expect(client.lastContact).toBeLessThan(world.clock.monotonic() - 39_000)
})

it('a shorter timeout after a reconnect shortens the lease', () => {
  const lease = new Lease()
  lease.onConnected(30_000, 0)
  lease.onReply(0, 'commit')
  expect(lease.horizon).toBe(28_000)
  lease.onConnected(6_000, 1000) // Another server, at 1000 ms, grants less.
  lease.onReply(1000, 'commit')
  expect(lease.horizon).toBeLessThanOrEqual(1000 + 6_000 - 1500)
})
