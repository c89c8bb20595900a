import { utf8 } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Barrier } from './barrier/index.ts'
import { DoubleBarrier } from './double-barrier/index.ts'
import { LeaderElection } from './leader-election/index.ts'
import { MultiLock } from './multi-lock/index.ts'
import { Mutex } from './mutex/index.ts'
import { Queue } from './queue/index.ts'
import { ReadWriteLock } from './read-write-lock/index.ts'
import { Semaphore } from './semaphore/index.ts'
import { client as a, cutOff, setupEachTest, other as b, run, world } from './testing/setup.ts'
import { advanceUntilSettled } from './testing/settle.ts'
import { rejectionOf, watchSettled } from './testing/world.ts'
import { TreeCache } from './tree-cache/index.ts'

// Bugs of other clients' recipes that have no test beside the recipe. CUR is a CURATOR- key, CGH an issue of Curator's repository,
// KZ an issue of kazoo's, ZK a ZOOKEEPER- key.

setupEachTest('a', 'b')

it('a failed release is retried until the znode is gone, and no client enters before (CGH-1193)', async () => {
  const held = await run(new Mutex(a, '/lock').acquire())
  const waiting = new Mutex(b, '/lock').acquire()
  const entered = watchSettled(waiting)
  const restore = cutOff()
  await world.settle()
  const released = held.release()
  await world.settle()
  expect(entered()).toBe(false)
  restore()
  await advanceUntilSettled(world, 30_000, released)
  await run((await run(waiting)).release())
  expect((await run(b.getChildren('/lock'))).children).toEqual([])
})

it('waiters that abort remove their watches (CGH-1292, CUR-710, KZ-175)', async () => {
  const held = await run(new Mutex(a, '/lock').acquire())
  const write = await run(new ReadWriteLock(a, '/rw').write.acquire())
  await run(new Barrier(a, '/barrier').set())
  await world.settle()
  const before = world.server.stats().watches
  const stop = new AbortController()
  const { signal } = stop
  const options = { signal }
  const waits = Array.from({ length: 20 }, () => [
    new Mutex(b, '/lock', { localQueue: false }).acquire(options),
    new Barrier(b, '/barrier').wait(options),
    new Queue(b, '/queue', { codec: utf8 }).take(options),
    new ReadWriteLock(b, '/rw').read.acquire(options),
  ]).flat()
  const ends = Promise.allSettled(waits)
  await world.settle()
  expect(world.server.stats().watches).toBeGreaterThan(before)
  stop.abort()
  for (const end of await run(ends)) expect(end.status).toBe('rejected')
  await world.settle()
  expect(world.server.stats().watches).toBe(before)
  await run(Promise.all([held.release(), write.release()]))
})

it('the first member to leave a double barrier waits for all (CGH-753), and concurrent members all enter (ZK-1011)', async () => {
  const clients = [a, b, await world.client()]
  const entering = clients.map((client) => new DoubleBarrier(client, '/b', { members: 3 }).enter())
  const inside = await run(Promise.all(entering))
  const first = inside[0]!.release()
  const second = inside[1]!.release()
  const gone = [watchSettled(first), watchSettled(second)]
  await world.settle()
  expect(gone.map((each) => each())).toEqual([false, false])
  await run(Promise.all([first, second, inside[2]!.release()]))
})

it('entering a double barrier ends once on a timeout (CUR-536)', async () => {
  const stop = new AbortController()
  const entering = new DoubleBarrier(a, '/b', { members: 2 }).enter({ signal: stop.signal })
  entering.catch(() => {})
  await world.settle()
  stop.abort()
  await expect(run(entering)).rejects.toMatchObject({ name: 'AbortError' })
  await world.advance(60_000)
  expect(world.server.stats().watches).toBe(0)
})

it('a downgraded writer keeps its place: readers enter, writers stay behind (CUR-276, CUR-621)', async () => {
  const lock = new ReadWriteLock(a, '/rw')
  const write = await run(lock.write.acquire())
  const writer = new ReadWriteLock(b, '/rw').write.acquire()
  const wrote = watchSettled(writer)
  await world.settle()
  const read = await run(lock.downgrade(write))
  await world.settle()
  expect(wrote()).toBe(false)
  await run(read.release())
  await run((await run(writer)).release())
})

it('a reader and a writer do not deadlock (KZ-649)', async () => {
  const reader = await run(new ReadWriteLock(a, '/rw').read.acquire())
  const writer = new ReadWriteLock(b, '/rw').write.acquire()
  await world.settle()
  const later = new ReadWriteLock(a, '/rw').read.acquire()
  await world.settle()
  await run(reader.release())
  await run((await run(writer)).release())
  await run((await run(later)).release())
})

it('an interrupted leader takes part again (CUR-518, CUR-671)', async () => {
  const stop = new AbortController()
  const tokens: bigint[] = []
  const leading = new LeaderElection(a, '/e').lead(
    async ({ token, signal }) => {
      tokens.push(token)
      if (tokens.length === 3) stop.abort()
      else await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
    { requeue: true, signal: stop.signal },
  )
  leading.catch(() => {})
  for (const ms of [100, 20_000]) {
    await world.settle()
    const restore = cutOff()
    await world.advance(ms)
    restore()
    await world.advance(12_000)
  }
  await run(Promise.allSettled([leading]))
  expect(tokens).toHaveLength(3)
  expect(tokens[2]).toBeGreaterThan(tokens[0]!)
})

it('an election continues after its directory was deleted in an outage (CUR-724)', async () => {
  const terms = new LeaderElection(a, '/e').leadership()
  const first = (await run(terms.next())).value!
  const again = terms.next()
  const restore = cutOff()
  await world.advance(20_000)
  await run(b.delete('/e', { missingOk: true }))
  restore()
  await world.advance(12_000)
  expect(first.signal.aborted).toBe(true)
  expect((await run(again)).value!.token).toBeGreaterThan(first.token)
  await run(terms.return())
})

it('raising the number of permits wakes waiters (CUR-75)', async () => {
  const held = await run(new Semaphore(a, '/s', { permits: 1 }).acquire())
  const waiting = new Semaphore(b, '/s', { permits: 1 }).acquire()
  await world.settle()
  await run(new Semaphore(a, '/s', { permits: 1 }).setPermits(2))
  await run((await run(waiting)).release())
  await run(held.release())
})

it('the claim of a failed consumer is removed, and its item is delivered again (KZ-366)', async () => {
  const queue = new Queue(b, '/q', { codec: utf8 })
  await run(queue.put('x'))
  const dying = await world.client()
  const message = (await run(new Queue(dying, '/q', { codec: utf8 }).receive().next())).value!
  expect(message.value).toBe('x')
  const next = queue.take()
  await world.settle()
  await run(dying.close())
  expect(await run(next)).toBe('x')
  expect((await run(b.getChildren('/q/claims'))).children).toEqual([])
})

it('waiters wake after a reconnect (KZ-170)', async () => {
  const held = await run(new Mutex(b, '/lock').acquire())
  const waiting = new Mutex(a, '/lock').acquire()
  await world.settle()
  cutOff()()
  await world.advance(3000)
  expect(a.state).toBe('connected')
  await run(held.release())
  await run((await run(waiting)).release())
})

it('failed tryAcquire calls under contention leave no znode (KZ-732)', async () => {
  const held = await run(new Mutex(b, '/lock').acquire())
  const tries = Array.from({ length: 30 }, (_, n) =>
    new Mutex(n % 2 ? a : b, '/lock', { localQueue: false }).tryAcquire(),
  )
  expect(await run(Promise.all(tries))).toEqual(tries.map(() => undefined))
  await run(held.release())
  const handles = await run(
    Promise.all(tries.map(() => new Mutex(a, '/lock', { localQueue: false }).tryAcquire())),
  )
  const got = handles.filter((handle) => handle !== undefined)
  expect(got.length).toBeLessThanOrEqual(1)
  for (const handle of got) await run(handle.release())
  await world.advance(100)
  expect((await run(b.getChildren('/lock'))).children).toEqual([])
})

it('an error between the queue and the permits of a semaphore blocks no other client (KZ-429)', async () => {
  await run((await run(new Semaphore(b, '/s', { permits: 1 }).acquire())).release())
  const { stat } = await run(b.getACL('/s/leases'))
  const readOnly = [{ scheme: 'world', id: 'anyone', perms: 1 }]
  await run(b.setACL('/s/leases', readOnly, { version: stat.aversion }))
  await expect(run(new Semaphore(a, '/s', { permits: 1 }).acquire())).rejects.toThrow()
  await world.advance(100)
  expect((await run(b.getChildren('/s/locks'))).children).toEqual([])
})

it('a waiter does not hang on a predecessor that has just gone: no watch is set on a missing znode (WriteLock of ZooKeeper)', async () => {
  const held = await run(new Mutex(b, '/lock').acquire())
  // The predecessor goes between the listing and the watch on it.
  let listings = 0
  world.faults.toClient = (chunk, wire) => {
    if (wire.server.host === 'a' && chunk.length > 60 && ++listings === 2) void held.release()
    return chunk
  }
  const waiting = new Mutex(a, '/lock').acquire()
  const handle = await run(waiting)
  delete world.faults.toClient
  await run(handle.release())
  expect(world.server.stats().watches).toBe(0)
})

it('an election that is stopped while its create is in flight leaves no znode (CUR-18)', async () => {
  for (const turns of [0, 1, 2]) {
    const stop = new AbortController()
    const election = new LeaderElection(a, '/e')
    const next = election.leadership({ signal: stop.signal }).next()
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    const closed = election[Symbol.asyncDispose]()
    stop.abort()
    await run(Promise.all([next, closed]))
    await world.advance(100)
    const left = (await run(b.exists('/e'))) === undefined ? [] : (await run(b.getChildren('/e'))).children
    expect(left).toEqual([])
  }
})

it('a deadline limits the whole wait: a wake-up does not restart it (lock of kazoo)', async () => {
  const first = await run(new Mutex(b, '/lock', { localQueue: false }).acquire())
  const second = new Mutex(b, '/lock', { localQueue: false }).acquire()
  await world.settle()
  const stop = new AbortController()
  world.clock.after(1000, 'deadline of a test', () => stop.abort())
  const waiting = rejectionOf(new Mutex(a, '/lock').acquire({ signal: stop.signal }))
  const ended = watchSettled(waiting)
  await world.advance(900)
  // The second contender leaves, which wakes this one to wait for the first.
  const handle = (await run(Promise.all([first.release(), second])))[1]
  cutOff()()
  await world.advance(99)
  expect(ended()).toBe(false)
  await world.advance(2)
  expect(await run(waiting)).toMatchObject({ name: 'AbortError' })
  await run(handle.release())
  await world.advance(3000)
  expect((await run(b.getChildren('/lock'))).children).toEqual([])
})

it('MultiLock releases all locks when one is not available, and does not request later ones (multi-lock of Curator)', async () => {
  await run(b.create('/y', { acl: [{ scheme: 'world', id: 'anyone', perms: 1 }] }))
  const locks = ['/x', '/y', '/z'].map((path) => new Mutex(a, path))
  await expect(run(new MultiLock(locks).acquire())).rejects.toMatchObject({ name: 'NoAuthError' })
  await world.advance(100)
  expect((await run(b.getChildren('/x'))).children).toEqual([])
  expect(await run(b.exists('/z'))).toBeUndefined()
})

it('two clients that want several permits each do not deadlock with half of them (semaphore of Curator)', async () => {
  const semaphores = [a, b].map((client) => new Semaphore(client, '/s', { permits: 3 }))
  const held = await run(new Semaphore(a, '/s', { permits: 3 }).acquire({ permits: 2 }))
  const both = semaphores.map((semaphore) => semaphore.run(() => Promise.resolve(), { permits: 2 }))
  await world.settle()
  await run(held.release())
  await run(Promise.all(both))
  expect((await run(b.getChildren('/s/leases'))).children).toEqual([])
})

it('a candidate that leaves while others list causes no error (LeaderElectionSupport of ZooKeeper)', async () => {
  const leader = new LeaderElection(b, '/e').leadership()
  const first = (await run(leader.next())).value!
  const stop = new AbortController()
  const following = new LeaderElection(b, '/e').leadership({ signal: stop.signal }).next()
  await world.settle()
  const third = new LeaderElection(a, '/e').leadership()
  const last = third.next()
  stop.abort()
  await run(Promise.all([following, first.release()]))
  expect((await run(last)).value!.token).toBeGreaterThan(first.token)
  await run(Promise.all([leader.return(), third.return()]))
})

it('a server that reports the root for changes below it does not corrupt a cache (ClickHouse Keeper 115475)', async () => {
  await run(b.create('/t'))
  const watch = a.watch.bind(a)
  a.watch = (async (path: string, options: { mode: 'persistentRecursive' }) => {
    const watcher = await watch(path, options)
    const named = async function* (): AsyncGenerator<unknown> {
      for await (const event of watcher) yield { ...event, path: '/t' }
    }
    return { close: () => watcher.close(), [Symbol.asyncIterator]: named }
  }) as never
  const cache = new TreeCache(a, '/t')
  await run(cache.ready)
  await run(b.create('/t/x'))
  await world.advance(100)
  expect(cache.children('/t')).toEqual(['x'])
  await run(b.delete('/t/x'))
  await world.advance(100)
  expect(cache.children('/t')).toEqual([])
  await run(cache.close())
})
