import { AbortedError, json, OperationTimeoutError, utf8, type Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import {
  AmbiguousResultError,
  AtomicValue,
  Barrier,
  Configuration,
  Counter,
  DoubleBarrier,
  Group,
  LeaderElection,
  Lease,
  Mutex,
  Party,
  Queue,
  ReadWriteLock,
  Semaphore,
  settledChildren,
  UniqueIds,
  type WaitOptions,
} from './index.ts'
import { MultiLock } from './multi-lock/index.ts'
import { NameService } from './name-service/index.ts'
import { RevocableMutex } from './revocable/index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { enumerateFaults, EXPIRY_AFTER_REPLY, tree } from './testing/fault-fixture.ts'
import { countListeners, ManualWorld, rejectionOf } from './testing/world.ts'
import { TwoPhaseCommit } from './two-phase-commit/index.ts'

/** The longest wait of a call. */
const TIMEOUT_MS = 2000
/** For how long a call whose time is up may go on to learn what became of it. */
const OUTCOME_MS = 1000

type Call = (of: Client, options: WaitOptions, other: Client) => Promise<unknown>

const queueOf = (of: Client): Queue<string> => new Queue(of, '/l', { codec: utf8 })
const hardQueueOf = (of: Client): Queue<string> =>
  new Queue(of, '/l', { codec: utf8, bound: 'hard', maxItems: 2 })
const valueOf = (of: Client, mode: 'exact' | 'fast'): AtomicValue<string> =>
  new AtomicValue(of, '/v', { codec: utf8, initial: '', mode })
const handlers = {
  prepare: () => Promise.resolve('commit' as const),
  commit: () => Promise.resolve(),
  abort: () => Promise.resolve(),
}

const calls: Record<string, Call> = {
  'a mutex': (of, options) => new Mutex(of, '/l').acquire(options),
  'a mutex that is held': async (of, options, other) => {
    await new Mutex(other, '/l').acquire()
    return new Mutex(of, '/l').acquire(options)
  },
  'a try of a mutex': (of, options) => new Mutex(of, '/l').tryAcquire(options),
  'a revocable mutex': (of, options) => new RevocableMutex(of, '/l').acquire(options),
  'a write lock': (of, options) => new ReadWriteLock(of, '/l').write.acquire(options),
  'a try of a read lock': (of, options) => new ReadWriteLock(of, '/l').read.tryAcquire(options),
  'several locks': (of, options) =>
    new MultiLock(['/y', '/w'].map((path) => new Mutex(of, path))).acquire(options),
  permits: (of, options) => new Semaphore(of, '/l', { permits: 2 }).acquire(options),
  'a try of permits': (of, options) => new Semaphore(of, '/l', { permits: 2 }).tryAcquire(options),
  'permits that are held': async (of, options, other) => {
    await new Semaphore(other, '/l', { permits: 1 }).acquire()
    return new Semaphore(of, '/l', { permits: 1 }).acquire(options)
  },
  'an election': (of, options) => new LeaderElection(of, '/l', { announce: true }).acquire(options),
  'a lease': (of, options) => new Lease(of, '/l', { holder: 'x', durationMs: 600_000 }).acquire(options),
  'a try of a lease': async (of, options, other) => {
    const held = await new Lease(other, '/l', { holder: 'y', durationMs: 9 }).acquire()
    await held.release()
    return new Lease(of, '/l', { holder: 'x', durationMs: 600_000 }).tryAcquire(options)
  },
  'a barrier': (of, options) => new Barrier(of, '/l').set(options),
  'a double barrier': (of, options) => new DoubleBarrier(of, '/l', { members: 1 }).enter(options),
  'a double barrier whose others are missing': (of, options) =>
    new DoubleBarrier(of, '/l', { members: 2 }).enter(options),
  'a group': (of, options) => new Group(of, '/l', { codec: utf8 }).join('x', '', options),
  'a party': (of, options) => new Party(of, '/l').join('x', options),
  'a put': (of, options) => queueOf(of).put('a', options),
  'a put with a delay': (of, options) => queueOf(of).put('a', { delayMs: 1, ...options }),
  'a put with a hard bound': async (of, options, other) => {
    await hardQueueOf(other).put('b')
    return hardQueueOf(of).put('a', options)
  },
  'a take': async (of, options, other) => {
    await queueOf(other).putAll(['a', 'b'])
    return queueOf(of).take(options)
  },
  'a take that waits': async (of, options, other) => {
    const taken = queueOf(of).take(options)
    await other.sync('/')
    await queueOf(other).put('a')
    return taken
  },
  'a take by id': async (of, options, other) => {
    await queueOf(other).put('a', { id: 'x' })
    return queueOf(of).takeById('x', options)
  },
  'a look at a queue': async (of, options, other) => {
    await queueOf(other).put('a')
    return queueOf(of).peek(options)
  },
  'a value': (of, options) => valueOf(of, 'exact').set('x', options),
  'a value without markers': (of, options) => valueOf(of, 'fast').set('x', options),
  'a comparison of a value': async (of, options, other) => {
    const read = await valueOf(other, 'exact').get()
    return valueOf(of, 'exact').compareAndSet(read, 'x', options)
  },
  'a counter': (of, options) => new Counter(of, '/v').add(1n, options),
  'unique ids': (of, options) => new UniqueIds(of, '/v').next(options),
  'an update of a configuration': (of, options) =>
    new Configuration(of, '/v', { codec: json<number>(), defaults: 1 }).update(() => 2, options),
  'a configuration': (of, options) => new Configuration(of, '/v', { codec: json<number>() }).set(2, options),
  'a comparison of a value without markers': async (of, options, other) => {
    const read = await valueOf(other, 'fast').get()
    return valueOf(of, 'fast').compareAndSet(read, 'x', options)
  },
  'a configuration over a version': async (of, options, other) => {
    const config = new Configuration(other, '/v', { codec: json<number>(), defaults: 1 })
    const { version } = await config.get()
    return new Configuration(of, '/v', { codec: json<number>() }).set(2, { version, ...options })
  },
  'a name': (of, options) => new NameService(of, '/v', utf8).register('x', '', options),
  'an ephemeral name': (of, options) =>
    new NameService(of, '/v', utf8).register('x', '', { ephemeral: true, ...options }),
  'an instance': (of, options) =>
    new ServiceDiscovery(of, '/v').register({ name: 'api', id: 'x', address: 'h', port: 1 }, options),
  'a provider': (of, options) => new ServiceDiscovery(of, '/v').provider('api', options),
  'a site of transactions': (of, options) => new TwoPhaseCommit(of, '/v').join('x', handlers, options),
  'children that settle': (of, options) => settledChildren(of, '/', 100, options),
}

it.each(Object.entries(calls))(
  'a call ends in time when the connection is lost at any of its requests: %s',
  async (_name, call) => {
    await enumerateFaults(
      async (fixture, victim) => {
        const { clock } = fixture.world
        const other = await fixture.world.client()
        const startedAt = clock.monotonic()
        try {
          await call(victim.client, { timeoutMs: TIMEOUT_MS }, other)
        } catch (error) {
          if (!(error instanceof OperationTimeoutError || error instanceof AmbiguousResultError)) throw error
          expect(error.maybeApplied).toBe(error instanceof AmbiguousResultError)
        }
        expect(clock.monotonic() - startedAt).toBeLessThan(TIMEOUT_MS + OUTCOME_MS + 100)
        await fixture.waitUntilQuiet()
        await victim.client.close()
        await other.close()
      },
      ['session expired before the server reads it', 'session expired after it was applied'],
      { everywhere: true },
    )
  },
)

it.each(Object.entries(calls))(
  'a call goes on in the next session when its own expires at any of its requests: %s',
  async (name, call) => {
    await enumerateFaults(
      async (fixture, victim) => {
        const other = await fixture.world.client()
        try {
          const result = await call(victim.client, { timeoutMs: 100_000 }, other)
          if (name.startsWith('a try')) expect(result).toBeDefined()
        } catch (error) {
          // What a write has done in a session that has expired may be unknown. Others may have entered without a member.
          const isMissed = /continued without this one/.test((error as Error).message)
          const isWait = /held|missing/.test(name) && error instanceof OperationTimeoutError
          if (!(error instanceof AmbiguousResultError || isMissed || isWait)) throw error
        }
        await fixture.waitUntilQuiet()
        await victim.client.close()
        await other.close()
      },
      [
        'session expired before the server reads it',
        'session expired after it was applied',
        EXPIRY_AFTER_REPLY,
      ],
      { everywhere: true },
    )
  },
)

it.each(Object.entries(calls))('a call whose signal has aborted sends nothing: %s', async (_name, call) => {
  const world = await ManualWorld.start()
  const sent: string[] = []
  const client = await world.client({
    instrumentation: {
      request:
        ({ operation }) =>
        ({ requestBytes }) =>
          void (requestBytes > 0 && sent.push(operation)),
    },
  })
  const other = await world.client()
  const prepared = rejectionOf(call(client, { signal: AbortSignal.abort() }, other))
  expect(await world.within(5000, prepared)).toBeInstanceOf(AbortedError)
  await world.advance(1000)
  expect(sent).toEqual([])
  await world.end()
})

it.each(Object.entries(calls))(
  'a signal that aborts after its call has no effect: %s',
  async (name, call) => {
    if (/held|missing|look/.test(name)) return
    const world = await ManualWorld.start()
    const client = await world.client()
    const other = await world.client()
    const stop = new AbortController()
    const listeners = countListeners(stop.signal)
    const result = (await world.within(5000, call(client, { signal: stop.signal }, other))) as {
      readonly signal?: AbortSignal
    } | null
    await world.advance(100)
    expect(listeners()).toBe(0)
    const before = await world.within(5000, tree(other))
    stop.abort()
    await world.advance(1000)
    expect(result?.signal?.aborted ?? false).toBe(false)
    expect(await world.within(5000, tree(other))).toEqual(before)
    await world.end()
  },
)
