import { afterEach, beforeEach, expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'
import { Lease } from './lease.ts'

let world: ManualWorld

beforeEach(async () => {
  world = await ManualWorld.start()
})
afterEach(() => world.end())

it('the last contact is when the newest answered request left, not when its answer came', async () => {
  const client = await world.client()
  const sentAt = world.clock.monotonic()
  await world.outcome(client.exists('/'))
  expect(client.lastContact).toBe(sentAt)
  await world.advance(4100)
  expect(client.lastContact).toBeGreaterThanOrEqual(sentAt + 4000)
})

it('the answer to a ping from before a pause proves nothing about the time after it', async () => {
  const client = await world.client({ sessionTimeout: 30_000 })
  await world.outcome(client.exists('/'))
  // A ping leaves and its answer is under way when the process stops.
  const held: Uint8Array[] = []
  world.faults.toClient = (chunk) => {
    held.push(chunk)
    return undefined
  }
  await world.advance(10_050)
  expect(held).toHaveLength(1)
  const { leaseHorizon } = client
  delete world.faults.toClient
  const { lastConnection: wire } = world
  world.faults.toServer = () => undefined
  // The timers run late, all at once, and then the answer is read.
  world.clock.after(0, 'pause', () => world.clock.advance(40_000))
  world.clock.advance(0)
  for (const chunk of held) wire.deliver(chunk)
  await world.settle()
  expect(client.leaseHorizon).toBeLessThan(leaseHorizon + 11_000)
  expect(client.lastContact).toBeLessThan(world.clock.monotonic() - 39_000)
})

it('a shorter timeout after a reconnect shortens the lease', () => {
  const lease = new Lease()
  lease.onConnected(30_000, 0)
  lease.onReply(0, 'commit')
  expect(lease.horizon).toBe(28_000)
  lease.onConnected(6_000, 1000) // another server, at 1000, grants less
  lease.onReply(1000, 'commit')
  expect(lease.horizon).toBeLessThanOrEqual(1000 + 6_000 - 1500)
})
