import { describe, expect, it } from 'vitest'
import { run, setupEachTest, world } from '../testing/setup.ts'
import { FrameLog } from '../testing/frame-log.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest()

describe('heartbeats', () => {
  it.each([
    [30_000, 10_000, 20_000, 40_000],
    [6000, 2000, 4000, 8000],
    [90_000, 10_000, 60_000, 120_000],
  ])(
    'of a session of %d ms: ping after %d, disconnect after %d, expiry after %d',
    async (timeout, ping, drop, expiry) => {
      const client = await world.client({ sessionTimeoutMs: timeout })
      const states = world.states(client)
      const log = world.logFrames()
      await world.advance(ping - 50)
      expect(log.splice()).toEqual([])
      await world.advance(100)
      expect(log.splice()).toEqual(['ping'])
      world.isolate()
      await world.advance(drop - 100)
      expect(client.state).toBe('connected')
      await world.advance(150)
      expect(client.state).toBe('suspended')
      await world.advance(expiry - drop - 200)
      expect(client.state).toBe('suspended')
      await world.advance(200)
      expect(states).toEqual(['connected', 'suspended', 'expired', 'connecting'])
      world.endIsolation()
      await world.advance(11_000)
      expect(states.at(-1)).toBe('connected')
      expect(client.session.generation).toBe(2)
    },
  )

  it('continue while events arrive and requests are pending', async () => {
    const client = await world.client()
    await run(client.create('/a'))
    const other = await world.client()
    const watcher = await run(client.watch('/a'))
    const events = world.collect(watcher)
    const log = new FrameLog(world.connections)
    const connection = world.connections[0]
    world.faults.toServer = (chunk, own) => {
      if (own === connection) log.take(own, chunk)
      return chunk
    }
    for (let i = 0; i < 10; i++) {
      await run(other.setData('/a', bytes(String(i))))
      await world.advance(1000)
    }
    expect(events).toHaveLength(10)
    expect(log.splice()).toEqual(['ping', 'ping'])
  })

  it('detect a half-open connection', async () => {
    const client = await world.client()
    const states = world.states(client)
    world.faults.toClient = (chunk, connection) => (connection === world.connections[0] ? undefined : chunk)
    await world.advance(8100)
    expect(states).toEqual(['connected', 'suspended'])
    await world.advance(1500)
    expect(states).toEqual(['connected', 'suspended', 'connected'])
    expect(client.session.generation).toBe(1)
  })

  it('run first after a stall, and bytes that arrived meanwhile count', async () => {
    const stalls: number[] = []
    const client = await world.client({ instrumentation: { stall: (ms) => stalls.push(ms) } })
    const log = world.logFrames()
    // The event loop is blocked for longer than the idle limit, with the replies of the server in the socket buffer.
    world.clock.advance(9000)
    await world.settle()
    expect(log.splice()[0]).toBe('ping')
    expect(stalls).toHaveLength(0)
    expect(client.state).toBe('connected')
  })
})

describe('the lease horizon', () => {
  it('is a timeout less a margin after a committed write, and stays there while disconnected', async () => {
    const client = await world.client({ sessionTimeoutMs: 12_000 })
    expect(client.leaseHorizon).toBe(Number.NEGATIVE_INFINITY)
    const before = world.clock.monotonic()
    await run(client.create('/a'))
    expect(client.leaseHorizon).toBe(before + 12_000 - 2000)
    await world.advance(500)
    await run(client.getData('/a'))
    expect(client.leaseHorizon).toBe(before + 10_000)
    world.isolate()
    await world.advance(9000)
    expect(client.state).toBe('suspended')
    expect(client.leaseHorizon).toBe(before + 10_000)
    await world.advance(8000)
    expect(client.leaseHorizon).toBe(Number.NEGATIVE_INFINITY)
    world.endIsolation()
  })

  it('counts reads and pings of a long session, less the time that a follower may be stale', async () => {
    const client = await world.client({ sessionTimeoutMs: 30_000 })
    const before = world.clock.monotonic()
    await run(client.getData('/'))
    expect(client.leaseHorizon).toBe(before + 18_000)
    await world.advance(10_100)
    expect(client.leaseHorizon).toBe(before + 28_000)
  })

  it('does not count a rejected write as a commit', async () => {
    const client = await world.client({ sessionTimeoutMs: 12_000 })
    await expect(run(client.delete('/none'))).rejects.toThrow()
    expect(client.leaseHorizon).toBe(Number.NEGATIVE_INFINITY)
  })
})
