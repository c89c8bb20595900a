import {
  AbortedError,
  json,
  OperationTimeoutError,
  SessionExpiredError,
  UsageError,
  utf8,
  type Client,
} from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { MultiLock } from './multi-lock/index.ts'
import { NameService } from './name-service/index.ts'
import { Partitioner } from './partitioner/index.ts'
import { RevocableMutex } from './revocable/index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { client, cutOff, expireSession, other, run, setupEachTest, world } from './testing/setup.ts'
import { tree } from './testing/fault-fixture.ts'
import { bytes, countListeners, rejectionOf, watchSettled } from './testing/world.ts'
import { TwoPhaseCommit } from './two-phase-commit/index.ts'
import {
  AtomicValue,
  Barrier,
  Configuration,
  Counter,
  DoubleBarrier,
  Group,
  LeaderElection,
  Lease,
  LockTimeoutError,
  Mutex,
  Party,
  Queue,
  ReadWriteLock,
  Semaphore,
  settledChildren,
  TreeCache,
  UniqueIds,
  watchChildren,
  watchData,
  type Handle,
  type WaitOptions,
} from './index.ts'

setupEachTest('a', 'b')

const data = bytes('holder-1')

/** A call that waits for what `block` has taken or left open. */
interface Wait {
  readonly block: (of: Client) => Promise<unknown>
  readonly wait: (of: Client, options: WaitOptions) => Promise<unknown>
  /** For a lock: what the error of a timeout says about its holder. */
  readonly holder?: RegExp
}

const session = /held by session 0x[0-9a-f]+ \("holder-1"\)/
const item = { name: 'api', id: 'x', address: 'h', port: 1 }

const waits: Record<string, Wait> = {
  mutex: {
    block: (of) => new Mutex(of, '/l', { data }).acquire(),
    wait: (of, options) => new Mutex(of, '/l').acquire(options),
    holder: session,
  },
  'mutex behind a caller of the same client': {
    block: () => new Mutex(client, '/l', { data }).acquire(),
    wait: (of, options) => new Mutex(of, '/l').acquire(options),
    holder: session,
  },
  'revocable mutex': {
    block: (of) => new RevocableMutex(of, '/l').acquire(),
    wait: (of, options) => new RevocableMutex(of, '/l').acquire(options),
    holder: /held by session/,
  },
  'write lock': {
    block: (of) => Promise.all([1, 2].map(() => new ReadWriteLock(of, '/l', { data }).read.acquire())),
    wait: (of, options) => new ReadWriteLock(of, '/l').write.acquire(options),
    holder: /held by session 0x[0-9a-f]+ \("holder-1"\), session/,
  },
  'read lock': {
    block: (of) => new ReadWriteLock(of, '/l', { data }).write.acquire(),
    wait: (of, options) => new ReadWriteLock(of, '/l').read.acquire(options),
    holder: session,
  },
  semaphore: {
    block: (of) => new Semaphore(of, '/l', { permits: 2, data }).acquire({ permits: 2 }),
    wait: (of, options) => new Semaphore(of, '/l', { permits: 2 }).acquire(options),
    holder: session,
  },
  'several locks': {
    block: (of) => new Mutex(of, '/y', { data }).acquire(),
    wait: (of, options) => new MultiLock(['/y', '/w'].map((path) => new Mutex(of, path))).acquire(options),
    holder: session,
  },
  election: {
    block: (of) => new LeaderElection(of, '/l', { id: 'holder-1' }).acquire(),
    wait: (of, options) => new LeaderElection(of, '/l').acquire(options),
    holder: session,
  },
  lease: {
    block: (of) => new Lease(of, '/l', { holder: 'holder-1', durationMs: 600_000 }).acquire(),
    wait: (of, options) => new Lease(of, '/l', { holder: 'x', durationMs: 9 }).acquire(options),
    holder: /held by "holder-1"/,
  },
  barrier: {
    block: (of) => new Barrier(of, '/l').set(),
    wait: (of, options) => new Barrier(of, '/l').wait(options),
  },
  'reverse barrier': {
    block: () => Promise.resolve(),
    wait: (of, options) => new Barrier(of, '/l').waitForPresence(options),
  },
  'double barrier': {
    block: () => Promise.resolve(),
    wait: (of, options) => new DoubleBarrier(of, '/l', { members: 30 }).enter(options),
  },
  'member of a group': {
    block: (of) => new Group(of, '/l', { codec: utf8 }).join('x', ''),
    wait: (of, options) =>
      new Group(of, '/l', { codec: utf8 }).join('x', '', { onConflict: 'wait', ...options }),
  },
  'instance of a service': {
    block: (of) => new ServiceDiscovery(of, '/l').register(item),
    wait: (of, options) => new ServiceDiscovery(of, '/l').register(item, { onConflict: 'wait', ...options }),
  },
  'consumer of a queue': {
    block: () => Promise.resolve(),
    wait: (of, options) => new Queue(of, '/l', { codec: utf8 }).take(options),
  },
  'producer of a queue': {
    block: (of) => new Queue(of, '/l', { codec: utf8 }).put('a'),
    wait: (of, options) => new Queue(of, '/l', { codec: utf8, maxItems: 1 }).put('b', options),
  },
  'children that settle': {
    block: (of) => of.createMissing([{ path: '/l', mode: 'container' }]),
    wait: (of, options) => settledChildren(of, '/l', 600_000, options),
  },
}

describe.each(Object.entries(waits))('a waiting %s', (_name, { block, wait, holder }) => {
  /** Begins the wait behind the other client. */
  async function begin(
    options: WaitOptions,
  ): Promise<{ error: Promise<unknown>; left: () => Promise<unknown> }> {
    await world.within(10_000, block(other))
    await world.advance(100)
    const before = await run(tree(other))
    const { watches } = world.server.stats()
    const error = rejectionOf(wait(client, options))
    const left = async (): Promise<unknown> => {
      await world.advance(3000)
      const after = await run(tree(other))
      const isOwn = (path: string): boolean =>
        /-\d{10}$|r0\/|\/members\//.test(path) && !before.includes(path)
      return { nodes: after.filter(isOwn), watches: world.server.stats().watches - watches }
    }
    return { error, left }
  }

  it('rejects when its time is up, says what it waited for, and leaves nothing behind', async () => {
    const stop = new AbortController()
    const listeners = countListeners(stop.signal)
    const { error, left } = await begin({ timeoutMs: 500, signal: stop.signal })
    const isSettled = watchSettled(error)
    await world.advance(450)
    expect(isSettled()).toBe(false)
    const failure = await world.within(1000, error)
    expect(failure).toBeInstanceOf(OperationTimeoutError)
    const { message, path } = failure as OperationTimeoutError
    expect(message).toContain('no result within 500 ms')
    expect(path).toMatch(/^\//)
    expect(failure instanceof LockTimeoutError).toBe(holder !== undefined)
    if (holder !== undefined) {
      expect(message).toMatch(holder)
      expect((failure as LockTimeoutError).holders[0]?.path).toMatch(/^\//)
    }
    expect(await left()).toEqual({ nodes: [], watches: 0 })
    expect(listeners()).toBe(0)
  })

  it('listens once to a signal that a dozen calls share', async () => {
    const stop = new AbortController()
    const listeners = countListeners(stop.signal)
    const { error, left } = await begin({ signal: stop.signal })
    const others = Array.from({ length: 11 }, () => rejectionOf(wait(client, { signal: stop.signal })))
    await world.advance(500)
    expect(listeners()).toBeLessThan(2)
    stop.abort()
    for (const each of [error, ...others]) expect(await world.within(5000, each)).toBeInstanceOf(AbortedError)
    expect(await left()).toEqual({ nodes: [], watches: 0 })
    expect(listeners()).toBe(0)
  })

  it('rejects in time while it is cut off', async () => {
    const { error } = await begin({ timeoutMs: 500 })
    await world.settle()
    cutOff('a')
    expect(await world.within(1000, error)).toBeInstanceOf(OperationTimeoutError)
  })

  it('rejects with the expiry of its session where onExpiry is fail, and goes on where it is not', async () => {
    const { error } = await begin({ onExpiry: 'fail' })
    const patient = rejectionOf(wait(client, { timeoutMs: 200_000 }))
    const isOver = watchSettled(patient)
    await world.settle()
    await expireSession('a')
    expect(await world.within(1000, error)).toBeInstanceOf(SessionExpiredError)
    expect(isOver()).toBe(false)
    expect(await world.within(300_000, patient)).toBeInstanceOf(OperationTimeoutError)
  })
})

/** Calls that need no other client: they end in time while the connection is lost. */
const calls: Record<string, (of: Client, options: WaitOptions) => Promise<unknown>> = {
  'atomic value': (of, options) => new AtomicValue(of, '/v', { codec: utf8, initial: '' }).set('x', options),
  counter: (of, options) => new Counter(of, '/v').add(1n, options),
  'unique ids': (of, options) => new UniqueIds(of, '/v').next(options),
  configuration: (of, options) =>
    new Configuration(of, '/v', { codec: json<number>(), defaults: 1 }).update(() => 2, options),
  'party member': (of, options) => new Party(of, '/v').join('x', options),
  name: (of, options) => new NameService(of, '/v', utf8).register('x', '', options),
  'ephemeral name': (of, options) =>
    new NameService(of, '/v', utf8).register('x', '', { ephemeral: true, ...options }),
  provider: (of, options) => new ServiceDiscovery(of, '/v').provider('x', options),
  'site of transactions': (of, options) =>
    new TwoPhaseCommit(of, '/v').join(
      'x',
      {
        prepare: () => Promise.resolve('commit'),
        commit: () => Promise.resolve(),
        abort: () => Promise.resolve(),
      },
      options,
    ),
}

describe.each(
  Object.entries({
    ...Object.fromEntries(Object.entries(waits).map(([name, { wait }]) => [name, wait])),
    ...calls,
  }),
)('a call of a %s', (_name, call) => {
  it('refuses limits that are none', async () => {
    for (const options of [{ timeoutMs: -1 }, { timeoutMs: NaN }, { onExpiry: 'throw' as 'fail' }])
      expect(await run(rejectionOf(call(client, options)))).toBeInstanceOf(UsageError)
  })

  it('rejects in time without a connection', async () => {
    cutOff('a')
    await world.settle()
    expect(await world.within(400, rejectionOf(call(client, { timeoutMs: 300 })))).toBeInstanceOf(
      OperationTimeoutError,
    )
  })
})

/** Every way to a handle, and what is there while it is held. */
const handles: Record<string, (of: Client) => Promise<Handle>> = {
  ...Object.fromEntries(
    Object.entries(waits)
      .filter(([name]) => /mutex$|lock|semaphore|election|lease/.test(name))
      .map(([name, { wait }]) => [name, (of: Client) => wait(of, {}) as Promise<Handle>]),
  ),
  'double barrier': (of) => new DoubleBarrier(of, '/l', { members: 1 }).enter(),
  'member of a group': (of) => new Group(of, '/l', { codec: utf8 }).join('x', ''),
  'instance of a service': (of) =>
    new ServiceDiscovery(of, '/l').register({ ...item, serviceType: 'PERMANENT' }),
  ...(Object.fromEntries(
    ['party member', 'name', 'ephemeral name', 'site of transactions'].map((name) => [
      name,
      (of: Client) => calls[name]!(of, {}),
    ]),
  ) as Record<string, (of: Client) => Promise<Handle>>),
}

it.each(Object.entries(handles))(
  'the handle of a %s ends by release and by disposal, once',
  async (_name, take) => {
    for (const end of ['release', Symbol.asyncDispose] as const) {
      const handle = await world.within(5000, take(client))
      await world.within(5000, Promise.resolve(handle[end]()))
      await world.within(5000, handle.release())
      await world.advance(100)
      const nodes = await run(tree(other))
      // A released lease keeps its znode.
      expect(nodes.filter((path) => /-\d{10}$|\/x$|__party__|alive/.test(path))).toEqual([])
    }
  },
)

/** Loops over what changes, each with a first item or none. */
const loops: Record<string, (of: Client, signal: AbortSignal) => AsyncIterable<unknown>> = {
  'data of a znode': (of, signal) => watchData(of, '/v', { signal }),
  'children of a znode': (of, signal) => watchChildren(of, '/v', { signal }),
  'tree cache': (of, signal) => new TreeCache(of, '/v').events({ signal }),
  'atomic value': (of, signal) => new AtomicValue(of, '/v', { codec: utf8, initial: '' }).updates({ signal }),
  counter: (of, signal) => new Counter(of, '/v').updates({ signal }),
  configuration: (of, signal) =>
    new Configuration(of, '/v', { codec: utf8, defaults: '' }).updates({ signal }),
  group: (of, signal) => new Group(of, '/v').changes({ signal }),
  queue: (of, signal) => new Queue(of, '/v', { codec: utf8 }).receive({ signal }),
  leaderships: (of, signal) => new LeaderElection(of, '/v').leadership({ signal }),
  leaders: (of, signal) => new LeaderElection(of, '/v').observe({ signal }),
  shares: (of, signal) => new Partitioner(of, '/v', ['i'], { settleMs: 0, graceMs: 0 }).shares({ signal }),
}

describe.each(Object.entries(loops))('a loop over the %s', (name, loop) => {
  it('listens once to a signal that a dozen loops share', async () => {
    const stop = new AbortController()
    const listeners = countListeners(stop.signal)
    const drained = Array.from({ length: 12 }, async () => {
      for await (const _item of loop(client, stop.signal));
    })
    await world.advance(500)
    expect(listeners()).toBeLessThan(2)
    stop.abort()
    await world.within(5000, Promise.all(drained))
    expect(listeners()).toBe(0)
  })

  it.each(['connected', 'cut off'])('ends without an error when its signal aborts, %s', async (state) => {
    const stop = new AbortController()
    const listeners = countListeners(stop.signal)
    const drained = (async () => {
      for await (const _item of loop(client, stop.signal));
    })()
    await world.advance(500)
    const restore = state === 'cut off' ? cutOff('a') : (): void => {}
    await world.settle()
    stop.abort()
    // Ends when its items are handed over.
    if (name === 'shares') restore()
    expect(await world.within(5000, drained)).toBeUndefined()
    expect(listeners()).toBe(0)
  })
})

/** Loops with something in hand that must be given back, which takes a connection. */
const holding: Record<string, (of: Client, signal: AbortSignal) => AsyncIterable<unknown>> = {
  'messages of a queue': (of, signal) => new Queue(of, '/v', { codec: utf8 }).receive({ signal }),
  leaderships: (of, signal) =>
    new LeaderElection(of, '/v', { errorPolicy: 'session' }).leadership({ signal }),
}

it('a body that leads ends in time when its signal aborts while it is cut off', async () => {
  const stop = new AbortController()
  const ended = new LeaderElection(client, '/v', { errorPolicy: 'session' }).lead(
    ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    { signal: stop.signal },
  )
  await world.settle()
  const restore = cutOff('a')
  await world.settle()
  stop.abort()
  expect(await world.within(2000, ended)).toBeUndefined()
  restore()
  await world.advance(5000)
  expect((await run(other.getChildren('/v'))).children).toEqual([])
})

it.each(Object.entries(holding))(
  'a loop over %s ends in time when its signal aborts while it is cut off with one in hand, which is given back later',
  async (_name, loop) => {
    await run(new Queue(other, '/v', { codec: utf8 }).put('x'))
    const stop = new AbortController()
    const items = loop(client, stop.signal)[Symbol.asyncIterator]()
    await run(items.next())
    const restore = cutOff('a')
    await world.settle()
    const ended = items.next()
    stop.abort()
    expect(await world.within(2000, ended)).toEqual({ done: true, value: undefined })
    restore()
    await world.advance(5000)
    expect((await run(tree(other))).filter((path) => /claims\/|n_/.test(path))).toEqual([])
  },
)
