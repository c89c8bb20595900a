import { utf8, type Client, type ErrorPolicy } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { LeaderElection } from '../leader-election/index.ts'
import { MultiLock } from '../multi-lock/index.ts'
import { Mutex } from '../mutex/index.ts'
import { Partitioner } from '../partitioner/index.ts'
import { ReadWriteLock } from '../read-write-lock/index.ts'
import { RevocableMutex } from '../revocable/index.ts'
import { Semaphore } from '../semaphore/index.ts'
import { client, cutOff, setupEachTest, expireSession, other, run, third, world } from '../testing/setup.ts'
import { tree } from '../testing/fault-fixture.ts'
import { bytes, countListeners, rejectionOf, watchSettled } from '../testing/world.ts'
import type { Abortable, LockHandle } from './index.ts'

/** A way to get an exclusive lock, and its clean-up. */
interface Way {
  readonly acquire: (of: Client, options?: Abortable & Policy) => Promise<LockHandle>
  /** A second way to acquire, where `acquire` does not exclude itself. */
  readonly block?: (of: Client) => Promise<LockHandle>
  /** Ends what runs beside the lock. */
  readonly leave?: (held: LockHandle) => Promise<void>
}

interface Policy {
  readonly errorPolicy?: ErrorPolicy
}

/** Ends the generator of leaderships or the partitioner run that returned the lock. */
const cleanups = new WeakMap<LockHandle, () => Promise<void>>()
const leave = (held: LockHandle): Promise<void> => cleanups.get(held)?.() ?? Promise.resolve()

async function lead(of: Client, { signal, ...policy }: Abortable & Policy = {}): Promise<LockHandle> {
  const terms = new LeaderElection(of, '/e', { announce: true, ...policy }).leadership(
    signal ? { signal } : {},
  )
  const { value, done } = await terms.next()
  if (done) throw Object.assign(new Error('left'), { name: 'AbortError' })
  cleanups.set(value, async () => void (await terms.return()))
  return value
}

async function share(of: Client, { signal, ...policy }: Abortable & Policy = {}): Promise<LockHandle> {
  const stop = new AbortController()
  const left = new Promise<never>((_resolve, reject) => {
    const leaving = (): void => {
      signal?.removeEventListener('abort', leaving)
      stop.abort()
      reject(Object.assign(new Error('left'), { name: 'AbortError' }))
    }
    signal?.addEventListener('abort', leaving)
  })
  left.catch(() => {})
  // Members with the same name queue for the item that they both want.
  const partitioner = new Partitioner(of, `/p`, ['item'], { settleMs: 0, graceMs: 10, ...policy })
  let running: Promise<void> = Promise.resolve()
  const first = new Promise<LockHandle>((resolve, reject) => {
    running = partitioner.run(
      async ({ lock: held }) => {
        resolve(held)
        await new Promise((end) => held.signal.addEventListener('abort', end))
      },
      { signal: stop.signal },
    )
    running.catch(reject)
  })
  const held = await Promise.race([first, left])
  cleanups.set(held, () => {
    stop.abort()
    return running
  })
  return held
}

const mutex = (options: ConstructorParameters<typeof Mutex>[2]): Way => ({
  acquire: (of, { signal, ...policy } = {}) =>
    new Mutex(of, '/lock', { ...options, ...policy }).acquire({ owner: {}, ...(signal && { signal }) }),
})
const rw = (of: Client, policy: Policy = {}): ReadWriteLock => new ReadWriteLock(of, '/rw', policy)
const write = (of: Client): Promise<LockHandle> => rw(of).write.acquire()

const acquisitions: Record<string, Way> = {
  mutex: mutex({}),
  'mutex with the naming of kazoo': mutex({ naming: 'kazoo' }),
  'mutex with the naming of Curator': mutex({ naming: 'curator' }),
  'reentrant mutex': mutex({ reentrant: true }),
  'mutex without a local queue': mutex({ localQueue: false }),
  'revocable mutex': {
    acquire: (of, { signal, ...policy } = {}) =>
      new RevocableMutex(of, '/lock', policy).acquire(signal ? { signal } : {}),
  },
  'write lock': {
    acquire: (of, { signal, ...policy } = {}) => rw(of, policy).write.acquire(signal ? { signal } : {}),
  },
  'read lock': {
    acquire: (of, { signal, ...policy } = {}) => rw(of, policy).read.acquire(signal ? { signal } : {}),
    block: write,
  },
  'downgraded write lock': {
    acquire: async (of, { signal, ...policy } = {}) => {
      const lock = rw(of, policy)
      return lock.downgrade(await lock.write.acquire(signal ? { signal } : {}))
    },
    block: write,
  },
  'upgraded read lock': {
    acquire: async (of, { signal, ...policy } = {}) => {
      const lock = rw(of, policy)
      return (await lock.tryUpgrade(await lock.read.acquire(signal ? { signal } : {})))!
    },
  },
  semaphore: {
    acquire: (of, { signal, ...policy } = {}) =>
      new Semaphore(of, '/s', { permits: 2, ...policy }).acquire({ permits: 2, signal }),
  },
  'several locks': {
    acquire: (of, { signal, ...policy } = {}) =>
      new MultiLock(['/x', '/y'].map((path) => new Mutex(of, path, policy))).acquire(
        signal ? { signal } : {},
      ),
  },
  leadership: { acquire: lead, leave },
  'share of a partitioner': {
    acquire: share,
    block: (of) => new Mutex(of, '/p/locks/item').acquire(),
    leave,
  },
}

/** Ephemeral znodes. */
async function ephemerals(owner?: Client): Promise<string[]> {
  const found: string[] = []
  for (const path of await tree(third)) {
    const holder = (await third.exists(path))?.ephemeralOwner ?? 0n
    if (owner === undefined ? holder !== 0n : holder === owner.session.id) found.push(path)
  }
  return found
}

/** Lets a few milliseconds pass, for a partitioner to settle and for the watch on a held lock. */
const get = (held: Promise<LockHandle>): Promise<LockHandle> => world.within(30_000, held)

setupEachTest('a', 'b', 'c')

describe.each(Object.entries(acquisitions))(
  '%s',
  (_name, { acquire, block = acquire, leave: end = () => Promise.resolve() }) => {
    const over = async (...handles: readonly LockHandle[]): Promise<void> => {
      for (const held of handles) await world.within(30_000, held.release())
      for (const held of handles) await world.within(30_000, end(held))
      await world.advance(100)
      expect(await run(ephemerals())).toEqual([])
      expect(world.server.stats().watches).toBe(0)
    }

    it('grants a growing token, and removes all its znodes on release', async () => {
      const first = await get(acquire(client))
      expect(first.token).toBeTypeOf('bigint')
      expect((await run(third.exists(first.path)))?.ephemeralOwner).toBe(client.session.id)
      first.assertHeld()
      const waiting = acquire(other)
      await world.advance(100)
      await run(first.release())
      expect(first.signal.reason).toMatchObject({ name: 'LostError', reason: 'released', token: first.token })
      expect(() => first.assertHeld()).toThrow(first.signal.reason as Error)
      await run(first.release())
      await world.within(30_000, end(first))
      const second = await get(waiting)
      expect(second.token).toBeGreaterThan(first.token)
      await over(second)
    })

    it('releases at the end of a scope, and in the background', async () => {
      const seen = await get(acquire(client))
      const scope = async (): Promise<void> => {
        await using held = seen
        held.assertHeld()
      }
      await run(scope())
      expect(seen.signal.reason).toMatchObject({ reason: 'released' })
      await world.within(30_000, end(seen))
      const held = await get(acquire(client))
      await held.release({ background: true })
      expect(held.signal.aborted).toBe(true)
      await over(held)
    })

    it('applies guarded writes while it is held, and rejects them afterwards', async () => {
      await run(third.create('/data', { data: bytes('0') }))
      const set = (value: string) => [{ op: 'setData', path: '/data', data: bytes(value) }] as const
      const held = await get(acquire(client))
      await run(held.guard(set('1')))
      const nodes = await run(ephemerals(client))
      // Deleted by another client, before the holder is notified.
      for (const path of nodes.filter((each) => !each.includes('members')))
        await run(third.delete(path, { missingOk: true }))
      await expect(run(held.guard(set('2')))).rejects.toMatchObject({
        name: 'LostError',
        reason: 'nodeDeleted',
      })
      await world.advance(100)
      expect(held.signal.reason).toMatchObject({ reason: 'nodeDeleted' })
      await over(held)
      await expect(run(held.guard(set('3')))).rejects.toMatchObject({ name: 'LostError' })
      expect(utf8.decode((await run(third.getData('/data'))).data)).toBe('1')
    })

    it.each([
      ['connection', 'suspended'],
      ['session', 'expired'],
      [{ lease: {} }, 'leasePassed'],
    ] as const)('reports the loss at once under the policy %j', async (errorPolicy, reason) => {
      const held = await get(acquire(client, { errorPolicy }))
      const restore = cutOff('a')
      await world.settle()
      expect(held.signal.aborted).toBe(reason === 'suspended')
      if (reason !== 'suspended') held.assertHeld()
      restore()
      if (reason !== 'suspended') await expireSession('a')
      expect(held.signal.reason).toMatchObject({ name: 'LostError', reason })
      expect(() => held.assertHeld()).toThrow(held.signal.reason as Error)
      await world.advance(10_000)
      await over(held)
    })

    it('ends with its client', async () => {
      const held = await get(acquire(client))
      await world.advance(100)
      const closed = client.close()
      await world.within(10_000, closed)
      expect(['closed', 'nodeDeleted']).toContain((held.signal.reason as { reason: string }).reason)
      await world.within(30_000, held.release())
    })

    it('leaves nothing behind when a waiter aborts', async () => {
      const blocking = await get(block(other))
      await world.advance(100)
      const nodes = await run(ephemerals())
      const { watches } = world.server.stats()
      const stop = new AbortController()
      const listeners = countListeners(stop.signal)
      const waiting = rejectionOf(acquire(client, { signal: stop.signal }))
      const settled = watchSettled(waiting)
      await world.advance(500)
      expect(settled()).toBe(false)
      stop.abort()
      expect(await world.within(1000, waiting)).toMatchObject({ name: 'AbortError' })
      await world.advance(1000)
      expect(await run(ephemerals(client))).toEqual([])
      expect((await run(ephemerals())).length).toBe(nodes.length)
      expect(world.server.stats().watches).toBe(watches)
      expect(listeners()).toBe(0)
      blocking.assertHeld()
      await over(blocking)
    })
  },
)
