import { AbortedError, UsageError, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { LostError } from '../handles/lost.ts'
import type { LockHandle } from '../handles/types.ts'
import { client as a, cutOff, setupEachTest, meters, other as b, run, world } from '../testing/setup.ts'
import { advanceUntilSettled } from '../testing/settle.ts'
import {
  bytes,
  countListeners,
  rejectionOf,
  metered,
  pausableClock,
  watchSettled,
  type TappedConnection,
} from '../testing/world.ts'
import { Mutex } from './mutex.ts'

setupEachTest('a', 'a')
const queue = async (): Promise<string[]> => (await run(a.getChildren('/lock'))).children

describe('a mutex', () => {
  it('has one holder at a time, in order of arrival', async () => {
    const first = await run(new Mutex(a, '/lock').acquire())
    const second = new Mutex(b, '/lock').acquire()
    const settled = watchSettled(second)
    await world.settle()
    expect(settled()).toBe(false)
    await run(first.release())
    const held = await run(second)
    expect(held.token).toBeGreaterThan(first.token)
    held.assertHeld()
    await run(held.release())
    expect(await queue()).toEqual([])
    expect(world.server.stats().watches).toBe(0)
  })

  it('costs one round trip when it is free, and an extra watch only when it is held for a while', async () => {
    await run(a.createMissing([{ path: '/lock', mode: 'container' }]))
    const writes: number[] = []
    world.faults.toServer = (chunk) => {
      writes.push(chunk.length)
      return chunk
    }
    meters[0]!.take()
    const acquired = new Mutex(a, '/lock').acquire()
    const held = await run(acquired)
    expect(meters[0]!.take()).toEqual({ requests: ['create', 'getChildren'], events: [] })
    expect(writes).toHaveLength(1)
    await run(held.release())
    await world.advance(20)
    expect(meters[0]!.take()).toEqual({ requests: ['delete'], events: [] })
    const longer = await run(new Mutex(a, '/lock').acquire())
    await world.advance(20)
    expect(meters[0]!.take()).toEqual({ requests: ['create', 'getChildren', 'getData'], events: [] })
    await run(longer.release())
    await world.settle()
    expect(meters[0]!.take()).toEqual({ requests: ['delete'], events: ['nodeDeleted'] })
  })

  it('wakes exactly one waiter per release, which lists once, however long the queue is', async () => {
    const waiters = []
    const holder = await run(new Mutex(a, '/lock').acquire())
    for (let i = 0; i < 20; i++) {
      const { client, meter } = await metered(world)
      const acquired = new Mutex(client, '/lock').acquire()
      await world.settle()
      waiters.push({ meter, acquired })
    }
    for (const { meter } of waiters) meter.take()
    let current = holder
    for (const { meter, acquired } of waiters) {
      await run(current.release())
      current = await run(acquired)
      await world.settle()
      expect(meter.take()).toEqual({ requests: ['getChildren'], events: ['nodeDeleted'] })
      expect(
        waiters.flatMap((other) => other.meter.take().events.filter((type) => type !== 'nodeDeleted')),
      ).toEqual([])
    }
    await run(current.release())
  })

  it('sends no notification when a contender leaves that is not a predecessor', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const stop = new AbortController()
    const leaving = rejectionOf(new Mutex(b, '/lock').acquire({ signal: stop.signal }))
    await world.settle()
    const { client: c, meter: meterC } = await metered(world)
    const last = new Mutex(c, '/lock').acquire()
    await world.settle()
    meters[0]!.take()
    meterC.take()
    stop.abort()
    expect(await run(leaving)).toBeInstanceOf(AbortedError)
    await world.settle()
    expect(meterC.take()).toEqual({ requests: ['getChildren', 'getData'], events: ['nodeDeleted'] })
    expect(meters[0]!.take()).toEqual({ requests: [], events: [] })
    await run(holder.release())
    await run((await run(last)).release())
    expect(world.server.stats().watches).toBe(0)
  })

  it('leaves no znode, watch or listener behind when a waiter aborts', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const watches = world.server.stats().watches
    const stop = new AbortController()
    const listeners = countListeners(stop.signal)
    const waiting = rejectionOf(new Mutex(b, '/lock').acquire({ signal: stop.signal }))
    await world.settle()
    expect(await queue()).toHaveLength(2)
    stop.abort()
    await run(waiting)
    await world.settle()
    expect(await queue()).toHaveLength(1)
    expect(world.server.stats().watches).toBe(watches)
    expect(listeners()).toBe(0)
    await run(holder.release())
  })

  it('tryAcquire succeeds only when the lock is free, and a failed call costs one read', async () => {
    const mutex = new Mutex(b, '/lock')
    const held = await run(mutex.tryAcquire())
    expect(held).toBeDefined()
    meters[0]!.take()
    expect(await run(new Mutex(a, '/lock').tryAcquire())).toBeUndefined()
    expect(meters[0]!.take().requests).toEqual(['getChildren'])
    expect(await run(mutex.tryAcquire())).toBeUndefined()
    await run(held!.release())
    expect(await queue()).toEqual([])
  })

  it('run propagates the errors of both the body and the release', async () => {
    const mutex = new Mutex(a, '/lock')
    expect(await run(mutex.run(async (held) => held.path))).toMatch(/^\/lock\//)
    await expect(run(mutex.run(() => Promise.reject(new Error('body'))))).rejects.toThrow('body')
    expect(await queue()).toEqual([])
  })

  it('participants lists the holder first', async () => {
    await run(new Mutex(a, '/lock', { data: bytes('A') }).acquire())
    void new Mutex(b, '/lock', { data: bytes('B') }).acquire().catch(() => {})
    await world.settle()
    const participants = await run(new Mutex(a, '/lock').participants())
    expect(participants.map(({ owner }) => owner)).toEqual([a.session.id, b.session.id])
    expect(participants.map(({ data }) => data)).toEqual([bytes('A'), bytes('B')])
  })

  it('passes through a thousand holders with one notification and one listing each', async () => {
    const events: string[] = []
    const requests: string[] = []
    const instrumentation = {
      event: ({ type }: { type: string }) => void events.push(type),
      request: ({ operation }: { operation: string }) => void requests.push(operation),
    }
    const clients: Client[] = []
    for (let i = 0; i < 50; i++) clients.push(await world.client({ instrumentation }))
    let holders = 0
    let most = 0
    const tokens: bigint[] = []
    await run(a.createMissing([{ path: '/lock', mode: 'container' }]))
    const rounds = clients.map(async (client) => {
      for (let round = 0; round < 20; round++) {
        await new Mutex(client, '/lock').run(async ({ token }) => {
          most = Math.max(most, ++holders)
          tokens.push(token)
          await client.exists('/lock')
          holders--
        })
      }
    })
    await advanceUntilSettled(world, 1000, Promise.all(rounds))
    await world.settle()
    expect(most).toBe(1)
    expect(tokens).toEqual(tokens.toSorted((x, y) => (x < y ? -1 : 1)))
    const count = (operation: string): number => requests.filter((one) => one === operation).length
    expect(tokens).toHaveLength(1000)
    // One for the next waiter, and one for the watch of each holder.
    expect(events.length).toBeLessThanOrEqual(2000)
    expect(count('create')).toBe(1000)
    expect(count('delete')).toBe(1000)
    // One with the create, one at the wake-up, and some whose predecessor has just gone.
    expect(count('getChildren')).toBeLessThanOrEqual(2100)
  })

  it('reports the wait time of a holder to instrumentation', async () => {
    const reports: unknown[] = []
    const recipe = (info: { phase: string }): void => void reports.push(info)
    const c = await world.client({ instrumentation: { recipe } })
    const first = await run(new Mutex(a, '/lock').acquire())
    const second = new Mutex(c, '/lock').acquire()
    await world.settle()
    await world.advance(500)
    await run(first.release())
    const held = await run(second)
    expect(reports).toEqual([{ recipe: 'mutex', path: held.path, phase: 'held', waitedMs: 500 }])
    await run(held.release())
  })

  it('a store that checks tokens rejects a holder that paused for too long', async () => {
    const slow = await world.client({ servers: 'slow:2181', errorPolicy: 'session' })
    let highest = 0n
    const write = (token: bigint): boolean => {
      if (token < highest) return false
      highest = token
      return true
    }
    const first = await run(new Mutex(slow, '/lock').acquire())
    expect(write(first.token)).toBe(true)
    const waiting = new Mutex(b, '/lock').acquire()
    const silence = (chunk: Uint8Array, wire: TappedConnection): Uint8Array | undefined =>
      wire.server.host === 'slow' ? undefined : chunk
    world.faults.toServer = world.faults.toClient = silence
    const second = await world.within(15_000, waiting)
    expect(write(second.token)).toBe(true)
    first.assertHeld()
    expect(write(first.token)).toBe(false)
    await run(second.release())
  })

  it('guard applies writes only while the znode exists, regardless of clocks', async () => {
    await run(a.create('/x', { data: bytes('0') }))
    const held = await run(new Mutex(a, '/lock').acquire())
    const [stat] = await run(held.guard([{ op: 'setData', path: '/x', data: bytes('1') }]))
    expect(stat.version).toBe(1)
    await expect(run(held.guard([{ op: 'delete', path: '/y' }]))).rejects.toMatchObject({
      index: 0,
      code: 'MULTI_FAILED',
    })
    held.assertHeld()
    await run(b.delete(held.path))
    const failure = await run(rejectionOf(held.guard([{ op: 'setData', path: '/x', data: bytes('2') }])))
    expect(failure).toMatchObject({ name: 'LostError', reason: 'nodeDeleted' })
    expect((await run(a.getData('/x'))).data).toEqual(bytes('1'))
  })
})

describe('callers of one client', () => {
  it('share one znode in the queue, in order of arrival', async () => {
    const first = await run(new Mutex(a, '/lock').acquire())
    const order: number[] = []
    const all = [1, 2, 3].map(async (n) => {
      const held = await new Mutex(a, '/lock').acquire()
      order.push(n)
      await held.release()
    })
    await world.settle()
    expect(await queue()).toHaveLength(1)
    await run(first.release())
    await run(Promise.all(all))
    expect(order).toEqual([1, 2, 3])
    expect(await queue()).toEqual([])
  })

  it('keep their turns when other local callers abort', async () => {
    const first = await run(new Mutex(a, '/lock').acquire())
    const stop = new AbortController()
    const gone = rejectionOf(new Mutex(a, '/lock').acquire({ signal: stop.signal }))
    const last = new Mutex(a, '/lock').acquire()
    stop.abort()
    expect(await run(gone)).toBeInstanceOf(AbortedError)
    await run(first.release())
    await run((await run(last)).release())
    expect(await run(rejectionOf(new Mutex(a, '/lock').acquire({ signal: stop.signal })))).toBeInstanceOf(
      AbortedError,
    )
  })

  it('get an error instead of waiting for themselves', async () => {
    const owner = {}
    const mutex = new Mutex(a, '/lock')
    const held = await run(mutex.acquire({ owner }))
    await expect(mutex.acquire({ owner })).rejects.toThrow(UsageError)
    await run(held.release())
    await run((await run(mutex.acquire({ owner }))).release())
  })

  it('may reenter, and the last release releases the lock', async () => {
    const owner = {}
    const mutex = new Mutex(a, '/lock', { reentrant: true })
    const outer = await run(mutex.acquire({ owner }))
    const inner = await run(mutex.acquire({ owner }))
    expect(inner.token).toBe(outer.token)
    await run(inner.release())
    await run(inner.release())
    outer.assertHeld()
    expect(await queue()).toHaveLength(1)
    await run(outer.release())
    expect(await queue()).toEqual([])
    await expect(mutex.acquire()).rejects.toThrow('Expected an owner')
  })
})

describe('a lost lock', () => {
  const reasonOf = (signal: AbortSignal): unknown => (signal.reason as LostError).reason

  it('aborts its signal when the connection breaks, and stays lost when the session survives', async () => {
    const held = await run(new Mutex(a, '/lock').acquire())
    let stateAtLoss = ''
    held.signal.addEventListener('abort', () => (stateAtLoss = a.state))
    world.connections[0]!.cut()
    await world.settle()
    expect(stateAtLoss).toBe('suspended')
    expect(() => held.assertHeld()).toThrow(LostError)
    expect(reasonOf(held.signal)).toBe('suspended')
    await world.advance(1000)
    expect(a.state).toBe('connected')
    expect(() => held.assertHeld()).toThrow('connection')
    await run(held.release())
    expect(await queue()).toEqual([])
  })

  it('is detected from the clock right after a pause, before the connection reports anything', async () => {
    const process = pausableClock(world)
    const client = await world.client({ platform: { clock: process.clock } })
    const held = await run(new Mutex(client, '/lock').acquire())
    process.standStill(11_900)
    held.assertHeld()
    process.standStill(100)
    expect(client.state).toBe('connected')
    expect(() => held.assertHeld()).toThrow(LostError)
    expect(held.signal.aborted).toBe(true)
  })

  it('is kept over a broken connection under the session policy, and until the horizon under the lease policy', async () => {
    const bySession = await run(new Mutex(a, '/one', { errorPolicy: 'session' }).acquire())
    const byLease = await run(new Mutex(a, '/two', { errorPolicy: { lease: {} } }).acquire())
    world.refuseConnections()
    world.connections[0]!.cut()
    await world.settle()
    bySession.assertHeld()
    byLease.assertHeld()
    const horizon = a.leaseHorizon
    await world.advance(horizon - world.clock.monotonic() - 50)
    byLease.assertHeld()
    await world.advance(50)
    expect(reasonOf(byLease.signal)).toBe('leasePassed')
    bySession.assertHeld()
    await world.advance(8000)
    expect(reasonOf(bySession.signal)).toBe('expired')
  })

  it('renews its lease with one transaction per third of the timeout, only while any lock is held', async () => {
    const options = { errorPolicy: { lease: {} } } as const
    const one = await run(new Mutex(a, '/one', options).acquire())
    const two = await run(new Mutex(a, '/two', options).acquire())
    await world.advance(20)
    meters[0]!.take()
    await world.advance(36_000)
    one.assertHeld()
    expect(meters[0]!.take().requests).toEqual(Array.from({ length: 9 }, () => 'syncCommitted'))
    await run(one.release())
    await run(two.release())
    meters[0]!.take()
    await world.advance(36_000)
    expect(meters[0]!.take().requests).toEqual([])
    expect(world.clock.pendingTimers().filter(({ name }) => name.includes('lease'))).toEqual([])
  })

  it('has the reason for a deleted znode, a closed client and a release', async () => {
    const one = await run(new Mutex(a, '/lock').acquire())
    await world.advance(20)
    await run(b.delete(one.path))
    await world.settle()
    expect(reasonOf(one.signal)).toBe('nodeDeleted')
    await run(one.release())
    const brief = await run(new Mutex(a, '/lock').acquire())
    await run(b.delete(brief.path))
    await world.settle()
    // No watch is set so early; guarded writes are rejected all the same.
    expect(brief.signal.aborted).toBe(false)
    await world.advance(10)
    expect(reasonOf(brief.signal)).toBe('nodeDeleted')
    await run(brief.release())
    const two = await run(new Mutex(a, '/lock').acquire())
    await run(two.release())
    expect(reasonOf(two.signal)).toBe('released')
    const three = await run(new Mutex(a, '/lock').acquire())
    const closed = a.close()
    await world.settle()
    await closed
    // The server may report the deletion before it confirms the end of the session.
    expect(['closed', 'nodeDeleted']).toContain(reasonOf(three.signal))
    await run(three.release())
    expect(meters[1]!.phases).toEqual([])
  })
})

it('a caller that finds another one before it does not wait for a connection longer than its limits', async () => {
  const c = await world.client({ servers: 'c:2181' })
  let restore = (): void => {}
  const other = new Mutex(b, '/late')
  let held: Promise<LockHandle> | undefined
  const deleteCode = 2
  world.faults.toClient = (chunk, connection) => {
    if (connection.server.host !== 'c') return chunk
    delete world.faults.toClient
    // The other client is first, after the listing of this one.
    held = other.acquire()
    world.clock.after(5, 'late reply', () => connection.deliver(chunk))
    return undefined
  }
  world.faults.toServer = (chunk, { server }) => {
    if (server.host !== 'c' || new DataView(chunk.buffer, chunk.byteOffset).getInt32(8) !== deleteCode)
      return chunk
    restore = cutOff('c')
    return undefined
  }
  const failed = rejectionOf(new Mutex(c, '/late').tryAcquire({ timeoutMs: 300 }))
  expect(await world.within(400, failed)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
  delete world.faults.toServer
  restore()
  await world.advance(5000)
  expect((await run(a.getChildren('/late'))).children).toHaveLength(1)
  await run((await held!).release())
})
