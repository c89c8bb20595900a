import { SeededRandom, type Clock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('after a stall, the reply to a ping counts from the time of that ping, not of a later one', async () => {
  let skew = 0
  const clock: Clock = {
    wall: () => world.clock.wall() + skew,
    monotonic: () => world.clock.monotonic() + skew,
    after: (ms, name, action) => world.clock.after(ms, name, action),
    immediate: (action) => world.clock.immediate(action),
    afterMicrotasks: (action) => world.clock.afterMicrotasks(action),
  }
  const client = await world.client({
    sessionTimeoutMs: 30_000,
    platform: { clock, random: new SeededRandom(1) },
  })
  const start = clock.monotonic()
  const held: Uint8Array[] = []
  world.faults.toClient = (chunk) => {
    held.push(chunk.slice())
    return undefined
  }
  await world.advance(10_050) // The first ping was sent at +10 s; its reply waits in the socket.
  expect(held.length).toBe(1)
  world.faults.toClient = () => undefined
  // The process is blocked until the timer of +20 s is 6 s late. Then come a ping and the reply to the FIRST one.
  skew = 6000
  let pings = 0
  world.faults.toServer = (chunk, connection) => {
    if (pings++ === 0) world.clock.immediate(() => connection.deliver(held[0]!))
    return chunk
  }
  await world.advance(9_950)
  expect(pings).toBe(1)
  // The server received a ping at +10 s, so the session is alive until +10 + 30 − 12 s.
  expect(client.leaseHorizon - start).toBeLessThanOrEqual(10_000 + 30_000 - 12_000)
})
