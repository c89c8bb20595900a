import { AbortedError, SessionExpiredError, UsageError, type Client } from '@zabra/client/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LostError } from '../held/lost.ts'
import {
  bytes,
  countListeners,
  failureOf,
  metered,
  refuseConnections,
  stoppable,
  watchSettled,
  World,
  type Meter,
} from '../testdata/world.ts'
import { Mutex } from './mutex.ts'

let world: World
let a: Client
let b: Client
let meterA: Meter
let meterB: Meter

beforeEach(async () => {
  world = await World.start()
  ;({ client: a, meter: meterA } = await metered(world))
  ;({ client: b, meter: meterB } = await metered(world))
})
afterEach(() => world.end())

const run = <T>(promise: Promise<T>): Promise<T> => world.outcome(promise)
const line = async (): Promise<string[]> => (await run(a.getChildren('/lock'))).children

describe('a mutex', () => {
  it('is held by one at a time, in the order of arrival', async () => {
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
    expect(await line()).toEqual([])
    expect(world.server.stats().watches).toBe(0)
  })

  it('costs one round trip when nobody has it, and one request more that nobody waits for', async () => {
    await run(a.mkdirp('/lock'))
    const writes: number[] = []
    world.interference.toServer = (chunk) => {
      writes.push(chunk.length)
      return chunk
    }
    meterA.take()
    const acquired = new Mutex(a, '/lock').acquire()
    const held = await run(acquired)
    expect(meterA.take()).toEqual({ requests: ['create', 'getChildren', 'getData'], events: [] })
    expect(writes).toHaveLength(2)
    await run(held.release())
    await world.settle()
    expect(meterA.take()).toEqual({ requests: ['delete'], events: ['nodeDeleted'] })
  })

  it('wakes exactly one waiter per release, who asks once, however long the line is', async () => {
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
      expect(meter.take()).toEqual({ requests: ['getChildren', 'getData'], events: ['nodeDeleted'] })
      expect(
        waiters.flatMap((other) => other.meter.take().events.filter((type) => type !== 'nodeDeleted')),
      ).toEqual([])
    }
    await run(current.release())
  })

  it('tells no waiter anything when somebody in the middle of the line is not the one before it', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const stop = new AbortController()
    const leaving = failureOf(new Mutex(b, '/lock').acquire({ signal: stop.signal }))
    await world.settle()
    const { client: c, meter: meterC } = await metered(world)
    const last = new Mutex(c, '/lock').acquire()
    await world.settle()
    meterA.take()
    meterC.take()
    stop.abort()
    expect(await run(leaving)).toBeInstanceOf(AbortedError)
    await world.settle()
    expect(meterC.take()).toEqual({ requests: ['getChildren', 'getData'], events: ['nodeDeleted'] })
    expect(meterA.take()).toEqual({ requests: [], events: [] })
    await run(holder.release())
    await run((await run(last)).release())
    expect(world.server.stats().watches).toBe(0)
  })

  it('leaves no node, watch or listener behind when a waiter gives up', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const watches = world.server.stats().watches
    const stop = new AbortController()
    const listeners = countListeners(stop.signal)
    const waiting = failureOf(new Mutex(b, '/lock').acquire({ signal: stop.signal }))
    await world.settle()
    expect(await line()).toHaveLength(2)
    stop.abort()
    await run(waiting)
    await world.settle()
    expect(await line()).toHaveLength(1)
    expect(world.server.stats().watches).toBe(watches)
    expect(listeners()).toBe(0)
    await run(holder.release())
  })

  it('is taken without waiting only when nobody is there, and a failed try costs one read', async () => {
    const mutex = new Mutex(b, '/lock')
    const held = await run(mutex.tryAcquire())
    expect(held).toBeDefined()
    meterA.take()
    expect(await run(new Mutex(a, '/lock').tryAcquire())).toBeUndefined()
    expect(meterA.take().requests).toEqual(['getChildren'])
    expect(await run(mutex.tryAcquire())).toBeUndefined()
    await run(held!.release())
    expect(await line()).toEqual([])
  })

  it('runs a body while holding, and tells of errors of both the body and the release', async () => {
    const mutex = new Mutex(a, '/lock')
    expect(await run(mutex.run(async (held) => held.path))).toMatch(/^\/lock\//)
    await expect(run(mutex.run(() => Promise.reject(new Error('body'))))).rejects.toThrow('body')
    expect(await line()).toEqual([])
  })

  it('lists who is in line, the holder first', async () => {
    await run(new Mutex(a, '/lock', { data: bytes('A') }).acquire())
    void new Mutex(b, '/lock', { data: bytes('B') }).acquire().catch(() => {})
    await world.settle()
    const participants = await run(new Mutex(a, '/lock').participants())
    expect(participants.map(({ owner }) => owner)).toEqual([a.session.id, b.session.id])
    expect(participants.map(({ data }) => data)).toEqual([bytes('A'), bytes('B')])
  })

  it('guards writes by the existence of its node, whatever the clocks say', async () => {
    await run(a.create('/x', bytes('0')))
    const held = await run(new Mutex(a, '/lock').acquire())
    const [stat] = await run(held.guard([{ op: 'setData', path: '/x', data: bytes('1') }]))
    expect(stat.version).toBe(1)
    await expect(run(held.guard([{ op: 'delete', path: '/y' }]))).rejects.toMatchObject({
      index: 0,
      code: 'MULTI_FAILED',
    })
    held.assertHeld()
    await run(b.delete(held.path))
    const failure = await run(failureOf(held.guard([{ op: 'setData', path: '/x', data: bytes('2') }])))
    expect(failure).toMatchObject({ name: 'LostError', reason: 'nodeDeleted' })
    expect((await run(a.getData('/x'))).data).toEqual(bytes('1'))
  })
})

describe('callers of one client', () => {
  it('share one place in the line, in their order', async () => {
    const first = await run(new Mutex(a, '/lock').acquire())
    const order: number[] = []
    const all = [1, 2, 3].map(async (n) => {
      const held = await new Mutex(a, '/lock').acquire()
      order.push(n)
      await held.release()
    })
    await world.settle()
    expect(await line()).toHaveLength(1)
    await run(first.release())
    await run(Promise.all(all))
    expect(order).toEqual([1, 2, 3])
    expect(await line()).toEqual([])
  })

  it('that give up while they wait for each other leave the others their turns', async () => {
    const first = await run(new Mutex(a, '/lock').acquire())
    const stop = new AbortController()
    const gone = failureOf(new Mutex(a, '/lock').acquire({ signal: stop.signal }))
    const last = new Mutex(a, '/lock').acquire()
    stop.abort()
    expect(await run(gone)).toBeInstanceOf(AbortedError)
    await run(first.release())
    await run((await run(last)).release())
    expect(await run(failureOf(new Mutex(a, '/lock').acquire({ signal: stop.signal })))).toBeInstanceOf(
      AbortedError,
    )
  })

  it('are told when they would wait for themselves', async () => {
    const owner = {}
    const mutex = new Mutex(a, '/lock')
    const held = await run(mutex.acquire({ owner }))
    await expect(mutex.acquire({ owner })).rejects.toThrow(UsageError)
    await run(held.release())
    await run((await run(mutex.acquire({ owner }))).release())
  })

  it('may count instead, and the last release gives it back', async () => {
    const owner = {}
    const mutex = new Mutex(a, '/lock', { reentrant: true })
    const outer = await run(mutex.acquire({ owner }))
    const inner = await run(mutex.acquire({ owner }))
    expect(inner.token).toBe(outer.token)
    await run(inner.release())
    await run(inner.release())
    outer.assertHeld()
    expect(await line()).toHaveLength(1)
    await run(outer.release())
    expect(await line()).toEqual([])
    await expect(mutex.acquire()).rejects.toThrow('Expected an owner')
  })
})

describe('when the lock is lost', () => {
  const reasonOf = (signal: AbortSignal): unknown => (signal.reason as LostError).reason

  it('the signal aborts at the moment of a broken connection, and it stays lost when the session goes on', async () => {
    const held = await run(new Mutex(a, '/lock').acquire())
    let stateAtLoss = ''
    held.signal.addEventListener('abort', () => (stateAtLoss = a.state))
    world.wires[0]!.cut()
    await world.settle()
    expect(stateAtLoss).toBe('suspended')
    expect(() => held.assertHeld()).toThrow(LostError)
    expect(reasonOf(held.signal)).toBe('suspended')
    await world.advance(1000)
    expect(a.state).toBe('connected')
    expect(() => held.assertHeld()).toThrow('connection')
    await run(held.release())
    expect(await line()).toEqual([])
  })

  it('a holder that stood still finds out from the clock, before its connection tells it anything', async () => {
    const process = stoppable(world)
    const client = await world.client({ ports: { clock: process.clock } })
    const held = await run(new Mutex(client, '/lock').acquire())
    process.standStill(11_900)
    held.assertHeld()
    process.standStill(100)
    expect(client.state).toBe('connected')
    expect(() => held.assertHeld()).toThrow(LostError)
    expect(held.signal.aborted).toBe(true)
  })

  it('keeps it over a lost connection under the session policy, and until the horizon under the lease policy', async () => {
    const bySession = await run(new Mutex(a, '/one', { errorPolicy: 'session' }).acquire())
    const byLease = await run(new Mutex(a, '/two', { errorPolicy: { lease: {} } }).acquire())
    world.interference.open = () => {
      throw new Error('refused')
    }
    world.wires[0]!.cut()
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

  it('renews its lease by a transaction per third of the timeout while anything is held, and no longer', async () => {
    const options = { errorPolicy: { lease: {} } } as const
    const one = await run(new Mutex(a, '/one', options).acquire())
    const two = await run(new Mutex(a, '/two', options).acquire())
    meterA.take()
    await world.advance(36_000)
    one.assertHeld()
    expect(meterA.take().requests).toEqual(Array.from({ length: 9 }, () => 'syncCommitted'))
    await run(one.release())
    await run(two.release())
    meterA.take()
    await world.advance(36_000)
    expect(meterA.take().requests).toEqual([])
    expect(world.clock.pending().filter(({ name }) => name.includes('lease'))).toEqual([])
  })

  it('by the deletion of its node, by the end of its client, or by its release, the reason says so', async () => {
    const one = await run(new Mutex(a, '/lock').acquire())
    await run(b.delete(one.path))
    await world.settle()
    expect(reasonOf(one.signal)).toBe('nodeDeleted')
    await run(one.release())
    const two = await run(new Mutex(a, '/lock').acquire())
    await run(two.release())
    expect(reasonOf(two.signal)).toBe('released')
    const three = await run(new Mutex(a, '/lock').acquire())
    const closed = a.close()
    await world.settle()
    await closed
    // The server may tell of the end of the node before it confirms the end of the session.
    expect(['closed', 'nodeDeleted']).toContain(reasonOf(three.signal))
    await run(three.release())
    expect(meterB.phases).toEqual([])
  })
})

describe('what went wrong in other locks', () => {
  it('is not granted on a node of the session before (CURATOR-498): a waiter whose session expired goes to the end', async () => {
    const holder = await run(new Mutex(a, '/lock', { errorPolicy: 'session' }).acquire())
    const waiting = new Mutex(b, '/lock').acquire()
    await world.settle()
    const before = (await line()).length
    const { client: c } = await metered(world)
    const later = new Mutex(c, '/lock').acquire()
    await world.settle()
    expect(before).toBe(2)
    const goOn = refuseConnections(world)
    const epoch = b.session.epoch
    world.wires[1]!.cut()
    await world.advance(17_000)
    goOn()
    await world.advance(20_000)
    expect(b.session.epoch).toBe(epoch + 1)
    await run(holder.release())
    const second = await run(later)
    const settled = watchSettled(waiting)
    await world.settle()
    expect(settled()).toBe(false)
    await run(second.release())
    const third = await run(waiting)
    expect(third.token).toBeGreaterThan(second.token)
    await run(third.release())
  })

  it('a waiter that would rather fail than go to the end of the line is told of the expiry', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const waiting = failureOf(new Mutex(b, '/lock').acquire({ onSessionLoss: 'throw' }))
    await world.settle()
    const goOn = refuseConnections(world)
    world.wires[1]!.cut()
    await world.advance(17_000)
    goOn()
    await world.advance(3000)
    expect(await run(waiting)).toBeInstanceOf(SessionExpiredError)
    await run(holder.release())
  })

  it('a client that does not renew its session ends the wait', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const { client: c } = await metered(world, { sessionExpiry: 'close' })
    const waiting = failureOf(new Mutex(c, '/lock').acquire())
    await world.settle()
    refuseConnections(world)
    world.wires[2]!.cut()
    await world.advance(17_000)
    expect(await run(waiting)).toBeInstanceOf(SessionExpiredError)
    await run(holder.release())
  })

  it('a waiter wakes when its predecessor went while it was suspended (kazoo 170)', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const waiting = new Mutex(b, '/lock').acquire()
    await world.settle()
    const goOn = refuseConnections(world)
    world.wires[1]!.cut()
    await world.settle()
    await run(holder.release())
    goOn()
    const held = await world.within(5000, waiting)
    await run(held.release())
  })

  it('a lost reply to the create leaves no node that everybody waits for', async () => {
    world.interference.toClient = (chunk, wire) => {
      if (wire !== world.wires[0]) return chunk
      delete world.interference.toClient
      wire.cut()
      return undefined
    }
    const held = await world.within(5000, new Mutex(a, '/lock').acquire())
    expect(await line()).toHaveLength(1)
    await run(held.release())
    expect(await line()).toEqual([])
  })

  it('failed tries leave no nodes under load (kazoo 732)', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const tries = Array.from({ length: 50 }, () => new Mutex(b, '/lock', { localQueue: false }).tryAcquire())
    expect(await run(Promise.all(tries))).toEqual(tries.map(() => undefined))
    expect(await line()).toHaveLength(1)
    await run(holder.release())
    const races = Array.from({ length: 50 }, () => new Mutex(b, '/lock', { localQueue: false }).tryAcquire())
    const winners = (await run(Promise.all(races))).filter((held) => held !== undefined)
    expect(winners.length).toBeLessThanOrEqual(1)
    for (const winner of winners) await run(winner.release())
    expect(await line()).toEqual([])
  })

  it('two locks of one session are two contenders (the id of the session in the name made them one)', async () => {
    const options = { localQueue: false }
    const first = await run(new Mutex(a, '/lock', options).acquire())
    const second = new Mutex(a, '/lock', options).acquire()
    const settled = watchSettled(second)
    await world.settle()
    expect(settled()).toBe(false)
    await run(first.release())
    await run((await run(second)).release())
  })

  it('a waiter whose own node is deleted hears of it at its turn, and the line goes on', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const waiting = failureOf(new Mutex(b, '/lock').acquire())
    await world.settle()
    const own = (await line()).find((name) => !holder.path.endsWith(name))!
    await run(a.delete(`/lock/${own}`))
    await run(holder.release())
    expect(await run(waiting)).toMatchObject({ name: 'LostError', reason: 'nodeDeleted' })
  })

  it('a directory that is deleted with all that is in it is made again, and waiters stand in line anew', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const waiting = new Mutex(b, '/lock').acquire()
    await world.settle()
    const nodes = (await line()).map((name) => ({ op: 'delete', path: `/lock/${name}` }) as const)
    await run(a.multi([...nodes, { op: 'delete', path: '/lock' }]))
    await run((await run(waiting)).release())
    expect(() => holder.assertHeld()).toThrow('somebody has deleted its znode')
    await run(holder.release())
  })

  it('two clients with different roots share a lock', async () => {
    await run(a.mkdirp('/app/lock'))
    const view = b.chroot('/app')
    const holder = await run(new Mutex(a, '/app/lock').acquire())
    const waiting = new Mutex(view, '/lock').acquire()
    await world.settle()
    await run(holder.release())
    const held = await run(waiting)
    expect(held.path).toMatch(/^\/lock\//)
    const [made] = await run(held.guard([{ op: 'create', path: '/made' }]))
    expect(made.path).toBe('/made')
    await run(held.release())
  })

  it('contenders with names of Curator, kazoo and ours stand in one line', async () => {
    const kinds = ['recipe', 'curator', 'kazoo'] as const
    const order: string[] = []
    const first = await run(new Mutex(a, '/lock').acquire())
    const all = kinds.map(async (naming) => {
      const held = await new Mutex(b, '/lock', { naming, localQueue: false }).acquire()
      order.push(naming)
      await held.release()
    })
    await world.settle()
    const names = (await line()).join(' ')
    expect(names).toMatch(/_c_[0-9a-f-]{36}-lock-\d{10}/)
    expect(names).toMatch(/(^| )[0-9a-f]{32}__lock__\d{10}/)
    await run(first.release())
    await run(Promise.all(all))
    expect(order).toEqual(kinds)
  })
})
