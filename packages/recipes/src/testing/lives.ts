import { utf8, type Client } from '@zabra/client/core'
import { expect } from 'vitest'
import { AtomicValue, Counter, UniqueIds } from '../atomic-value/index.ts'
import { Barrier } from '../barrier/index.ts'
import { Configuration } from '../configuration/index.ts'
import { DoubleBarrier } from '../double-barrier/index.ts'
import { Group, Party } from '../group/index.ts'
import { LeaderElection } from '../leader-election/index.ts'
import { Lease } from '../lease/index.ts'
import { MultiLock } from '../multi-lock/index.ts'
import { Mutex } from '../mutex/index.ts'
import { NameService } from '../name-service/index.ts'
import { Partitioner } from '../partitioner/index.ts'
import { PersistentNode } from '../persistent-node/index.ts'
import { curatorItems, Queue, type QueueOptions } from '../queue/index.ts'
import { ReadWriteLock } from '../read-write-lock/index.ts'
import {
  RevocableMutex,
  RevocableReadWriteLock,
  revoke,
  type RevocableLockHandle,
} from '../revocable/index.ts'
import { Semaphore } from '../semaphore/index.ts'
import { ServiceDiscovery } from '../service-discovery/index.ts'
import { after, type FaultFixture } from './fault-fixture.ts'
import { bytes } from './world.ts'
import { settledChildren, TreeCache, watchChildren, watchData } from '../tree-cache/index.ts'
import { TwoPhaseCommit } from '../two-phase-commit/index.ts'
import { AmbiguousResultError } from '../support/index.ts'

/** The steps of one client; throws or fails an assertion when the result is wrong. */
export type Life = (client: Client, observer: Client, fixture: FaultFixture) => Promise<unknown>

const queueOf = (client: Client, options: Partial<QueueOptions<string>> = {}): Queue<string> =>
  new Queue(client, '/q', { codec: utf8, ...options })

/** A policy that survives a broken connection, so that the lost reply is the only effect. */
const sessionPolicy = { errorPolicy: 'session' } as const

/** Returns a promise that a life awaits later: one that fails before, since its client has closed, is no unhandled rejection. */
function started<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

/** Collects what a loop yields until a promise resolves; the loop must not end before. */
async function collect<T>(
  until: Promise<unknown>,
  loop: (signal: AbortSignal) => AsyncIterable<T>,
): Promise<T[]> {
  const stop = new AbortController()
  const found: T[] = []
  const read = async (): Promise<void> => {
    for await (const one of loop(stop.signal)) found.push(one)
    expect(stop.signal.aborted).toBe(true)
  }
  const reading = started(read())
  await Promise.race([reading, until])
  stop.abort()
  await reading
  return found
}

const locks: Record<string, Life> = {
  'a mutex': async (client) => {
    for (const naming of ['recipe', 'curator', 'kazoo'] as const) {
      const mutex = new Mutex(client, `/lock-${naming}`, { ...sessionPolicy, naming })
      const held = await mutex.acquire()
      expect(await mutex.participants()).toHaveLength(1)
      await held.release()
      await (await mutex.tryAcquire())!.release()
    }
  },
  'a mutex behind another client': async (client, observer, fixture) => {
    const other = await new Mutex(observer, '/lock').acquire()
    const acquired = started(new Mutex(client, '/lock', sessionPolicy).acquire())
    await after(fixture.world, 500)
    await other.release()
    await (await acquired).release()
  },
  'a read/write lock with downgrade and upgrade': async (client) => {
    const lock = new ReadWriteLock(client, '/rw', sessionPolicy)
    const read = await lock.downgrade(await lock.write.acquire())
    const write = (await lock.tryUpgrade(read))!
    write.assertHeld()
    await write.release()
  },
  'several locks': async (client) => {
    const held = await new MultiLock(
      ['/x', '/y'].map((path) => new Mutex(client, path, sessionPolicy)),
    ).acquire()
    await held.release()
  },
  'a semaphore whose limit changes': async (client) => {
    const semaphore = new Semaphore(client, '/s', { permits: 2, ...sessionPolicy })
    const held = await semaphore.acquire({ permits: 2 })
    await semaphore.setPermits(3)
    await (await semaphore.acquire({ permits: 1 })).release()
    await held.release()
  },
  'permits without waiting': async (client, observer) => {
    const semaphore = new Semaphore(client, '/s', { permits: 2, ...sessionPolicy })
    const held = (await semaphore.tryAcquire({ permits: 2 }))!
    expect(await new Semaphore(observer, '/s', { permits: 2 }).tryAcquire()).toBeUndefined()
    expect(await semaphore.holders()).toMatchObject([{ permits: 2, owner: client.session.id }])
    await held.release()
    await (await new Semaphore(observer, '/s', { permits: 2 }).tryAcquire())!.release()
  },
  'a revocable read/write lock': async (client, observer) => {
    const lock = new RevocableReadWriteLock(client, '/rw', sessionPolicy)
    const held = await lock.downgrade(await lock.write.acquire())
    expect(await lock.participants()).toMatchObject([{ mode: 'read' }])
    const asked = started(revoke(observer, '/rw', { by: 'witness' }))
    expect(await (held as RevocableLockHandle).revokeRequested).toEqual({ by: 'witness' })
    await held.release()
    expect(await asked).toBe('released')
  },
  'leaderships one after the other, and who follows them': async (client, observer, fixture) => {
    const elections = [true, false].map(
      (announce) => new LeaderElection(client, `/e-${announce}`, { id: 'me', announce, ...sessionPolicy }),
    )
    const lead = async (): Promise<void> => {
      for (const election of elections) {
        let terms = 0
        for await (const leadership of election.leadership()) {
          await after(fixture.world, 50)
          await leadership.release()
          if (++terms === 2) break
        }
        expect(await election.participants()).toEqual([])
      }
      expect(await observer.exists('/e-true/leader')).toBeUndefined()
      await after(fixture.world, 500)
    }
    const led = started(lead())
    const seen = elections.map((election) => started(collect(led, (signal) => election.observe({ signal }))))
    await led
    for (const leaders of await Promise.all(seen)) {
      expect(leaders).toContainEqual(expect.objectContaining({ id: 'me' }))
      expect(leaders.at(-1)).toBeUndefined()
    }
  },
  'an election that announces its leader': async (client, observer) => {
    const terms: bigint[] = []
    await new LeaderElection(client, '/e', { id: 'me', announce: true, ...sessionPolicy }).lead(
      ({ token }) => {
        terms.push(token)
        return Promise.resolve()
      },
    )
    expect(terms).toHaveLength(1)
    expect(await observer.exists('/e/leader')).toBeUndefined()
  },
  'a revocation with and without force': async (client, observer) => {
    for (const force of [false, true]) {
      const held = await new RevocableMutex(observer, '/r').acquire()
      if (!force) void held.revokeRequested.then(() => held.release())
      expect(await revoke(client, '/r', { graceMs: 100, force })).toBe(force ? 'forced' : 'released')
      await held.release()
    }
  },
  'the holder of a revocable lock': async (client, observer) => {
    const held = await new RevocableMutex(client, '/r', sessionPolicy).acquire()
    const asked = started(revoke(observer, '/r', { by: 'witness' }))
    expect(await held.revokeRequested).toEqual({ by: 'witness' })
    await held.release()
    expect(await asked).toBe('released')
  },
  'a lease': async (client, observer) => {
    const held = (await new Lease(client, '/l', { holder: 'me', durationMs: 20_000 }).tryAcquire())!
    await held.renew()
    expect(
      await new Lease(observer, '/l', { holder: 'other', durationMs: 1000 }).tryAcquire(),
    ).toBeUndefined()
    await held.release()
    const next = (await new Lease(observer, '/l', { holder: 'other', durationMs: 1000 }).tryAcquire())!
    expect(next.token).toBeGreaterThan(held.token)
    await next.release()
  },
}

const queues: Record<string, Life> = {
  'items with priorities, delays and ids': async (client, observer) => {
    const queue = queueOf(client)
    await queue.put('later', { delayMs: 5000 })
    await queue.put('second', { priority: 1 })
    await queue.putAll(['first', 'third'], { id: 'x', priority: -1 })
    expect(await queue.take()).toBe('first')
    expect(await queue.takeById('x')).toBe('third')
    expect(await queue.takeById('x')).toBeUndefined()
    expect([await queue.take(), await queue.take()]).toEqual(['second', 'later'])
    expect(await queueOf(observer).size()).toBe(0)
  },
  'a queue with a hard bound': async (client, observer, fixture) => {
    const queue = queueOf(client, { bound: 'hard', maxItems: 1 })
    await queue.put('a')
    const waiting = started(queue.put('b'))
    await after(fixture.world, 300)
    expect(await queueOf(observer).take()).toBe('a')
    await waiting
    expect(await queueOf(observer).take()).toBe('b')
    expect(await queueOf(observer).size()).toBe(0)
  },
  'a returned message and a poison message': async (client, observer) => {
    const queue = queueOf(client, { deadLetterAfter: 2 })
    await queue.put('a')
    let seen = 0
    for await (const message of queue.receive()) {
      seen++
      // After two returns it moves to the dead letters; the next one is valid.
      if (seen === 2) await queueOf(observer).put('b')
      if (message.value === 'a') await message.nack()
      else {
        await message.ack()
        break
      }
    }
    expect(seen).toBe(3)
    expect(await queue.deadLetters()).toMatchObject([{ data: utf8.encode('a') }])
    expect(await queue.size()).toBe(0)
  },
  'queues with the naming of kazoo and Curator': async (client) => {
    for (const naming of ['kazoo', 'kazooPlain'] as const) {
      const kazoo = new Queue(client, `/${naming}`, { codec: utf8, naming })
      await kazoo.put('a')
      expect(await kazoo.peek()).toBe('a')
      expect(await kazoo.take()).toBe('a')
    }
    const codec = curatorItems(utf8)
    const curator = new Queue(client, '/curator', { codec, naming: 'curator' })
    await curator.put(['a', 'b'])
    expect(await curator.take()).toEqual(['a', 'b'])
  },
}

const shared: Record<string, Life> = {
  'loops over what others change': async (client, observer, fixture) => {
    await observer.create('/w', { data: bytes('1') })
    await observer.create('/n', { data: bytes('1') })
    const config = new Configuration(client, '/w', { codec: utf8 })
    const value = new AtomicValue(client, '/w', { codec: utf8, initial: '' })
    const read = (found: { data: Uint8Array } | undefined): string | undefined =>
      found && utf8.decode(found.data)
    const second = after(fixture.world, 1000)
    const loops = [
      collect(second, (signal) => watchData(client, '/w', { signal })).then((all) => all.map(read)),
      collect(second, (signal) => config.updates({ signal })).then((all) => all.map((one) => one.value)),
      collect(second, (signal) => value.updates({ signal })),
      collect(second, (signal) => new Counter(client, '/n').updates({ signal })),
      collect(second, (signal) => watchChildren(client, '/w', { signal })),
    ].map((loop) => started<unknown[]>(loop))
    await after(fixture.world, 200)
    await observer.setData('/w', bytes('2'))
    await observer.setData('/n', bytes('2'))
    await observer.create('/w/a')
    const last = (await Promise.all(loops)).map((all) => all.at(-1))
    expect(last).toEqual(['2', '2', '2', 2n, ['a']])
  },
  'a provider of a service': async (client, observer, fixture) => {
    const registered = new ServiceDiscovery(observer, '/services')
    await registered.register({ name: 'api', id: 'a', port: 1 })
    const discovery = new ServiceDiscovery(client, '/services')
    const provider = await discovery.provider('api')
    expect(provider.next()).toMatchObject({ id: 'a' })
    const changes = started(collect(after(fixture.world, 1000), (signal) => provider.changes({ signal })))
    await after(fixture.world, 200)
    await registered.register({ name: 'api', id: 'b', port: 2 })
    expect((await changes).at(-1)).toMatchObject([{ id: 'a' }, { id: 'b' }])
    await discovery.close()
    await registered.close()
  },
  'a counter, an exact value and compareAndSet': async (client, observer) => {
    const counter = new Counter(client, '/n')
    expect([await counter.add(), await counter.add(2n)]).toEqual([1n, 3n])
    expect(await new Counter(observer, '/n').get()).toBe(3n)
    const value = new AtomicValue(client, '/v', { codec: utf8, initial: 'a' })
    const before = await value.get()
    expect(await value.compareAndSet(before, 'b')).toBe(true)
    expect(await value.compareAndSet(before, 'c')).toBe(false)
    expect(await value.set('d')).toBe('d')
  },
  'a fast counter with ambiguous results': async (client, observer) => {
    const counter = new Counter(client, '/n', { mode: 'fast' })
    let sure = 0n
    let doubtful = 0n
    for (let n = 0; n < 3; n++) {
      try {
        await counter.add()
        sure++
      } catch (error) {
        expect(error).toBeInstanceOf(AmbiguousResultError)
        doubtful++
      }
    }
    const sum = await new Counter(observer, '/n').get()
    expect(doubtful).toBeLessThanOrEqual(1n)
    expect(sum >= sure && sum <= sure + doubtful).toBe(true)
  },
  'a configuration': async (client, observer) => {
    const config = new Configuration(client, '/c', { codec: utf8, defaults: 'a' })
    await config.set('b')
    expect(await config.update((value) => `${value}c`)).toBe('bc')
    expect((await new Configuration(observer, '/c', { codec: utf8 }).get()).value).toBe('bc')
  },
  'a name service': async (client, observer) => {
    const names = new NameService(client, '/names', utf8)
    const mine = await names.register('a', '1')
    const passing = await names.register('e', '1', { ephemeral: true })
    await mine.update('2')
    expect(await new NameService(observer, '/names', utf8).resolve('a')).toBe('2')
    await observer.create('/names/old', { data: utf8.encode('3') })
    await names.rename('old', 'new')
    expect(await names.resolve('new', { fresh: true })).toBe('3')
    await passing.release()
    await mine.release()
    expect(await names.names()).toEqual(['new'])
  },
  'a member of a group': async (client, observer) => {
    const group = new Group(client, '/g', { codec: utf8 })
    const member = await group.join('me', '1')
    await member.update('2')
    expect(await new Group(observer, '/g', { codec: utf8 }).members()).toEqual(new Map([['me', '2']]))
    await member.release()
    await group[Symbol.asyncDispose]()
  },
  'a member of a party': async (client, observer) => {
    for (const layout of ['party', 'shallow'] as const) {
      const member = await new Party(client, `/${layout}`, { layout }).join('me')
      expect(await new Party(observer, `/${layout}`, { layout }).members()).toEqual(['me'])
      await member.release()
    }
  },
  'unique ids': async (client, observer) => {
    const ids = new UniqueIds(client, '/ids', { blockSize: 2 })
    expect([await ids.next(), await ids.next(), await ids.next()]).toEqual([0n, 1n, 2n])
    expect(await new UniqueIds(observer, '/ids').next()).toBe(4n)
  },
  'a persistent node': async (client, observer) => {
    await using node = new PersistentNode(client, '/p/n', bytes('1'))
    await node.ready
    await node.setData(bytes('2'))
    expect((await observer.getData('/p/n')).data).toEqual(bytes('2'))
  },
  'an instance of a service': async (client, observer) => {
    const discovery = new ServiceDiscovery(client, '/services')
    const mine = await discovery.register({ name: 'api', id: 'a', port: 1 })
    await mine.update({ port: 2 })
    expect(await new ServiceDiscovery(observer, '/services').instances('api')).toMatchObject([{ port: 2 }])
    await discovery.close()
  },
  'a barrier': async (client, observer, fixture) => {
    const barrier = new Barrier(client, '/b')
    await barrier.set()
    const waiting = started(new Barrier(observer, '/b').wait())
    await after(fixture.world, 100)
    await barrier.remove()
    await waiting
    await new Barrier(observer, '/b').set()
    const own = started(barrier.wait())
    await after(fixture.world, 100)
    await new Barrier(observer, '/b').remove()
    await own
    const present = started(barrier.waitForPresence())
    await after(fixture.world, 100)
    await new Barrier(observer, '/b').set()
    await present
  },
  'a double barrier': async (client, observer) => {
    const both = [client, observer].map((each) => new DoubleBarrier(each, '/d', { members: 2 }))
    for (const round of [0, 1]) {
      const inside = await Promise.all(both.map((each) => each.enter()))
      expect(inside.map((each) => each.round)).toEqual([round, round])
      await Promise.all(inside.map((each) => each.release()))
    }
  },
  'a tree cache and settledChildren': async (client, observer, fixture) => {
    await observer.create('/t/a', { data: bytes('1'), parents: true })
    const cache = new TreeCache(client, '/t', { codec: utf8 })
    await cache.ready
    await observer.setData('/t/a', bytes('2'))
    await observer.create('/t/b')
    await after(fixture.world, 500)
    expect([cache.get('/t/a')?.value, cache.children('/t')]).toEqual(['2', ['a', 'b']])
    await cache.close()
    expect((await settledChildren(client, '/t', 50)).toSorted()).toEqual(['a', 'b'])
  },
  'a coordinator of transactions': async (client, observer) => {
    const done: string[] = []
    const note = (word: string) => () => Promise.resolve(void done.push(word))
    const prepare = (): Promise<'commit'> => Promise.resolve('commit')
    const site = await new TwoPhaseCommit(observer, '/x').join('s', {
      prepare,
      commit: note('commit'),
      abort: note('abort'),
    })
    const transaction = { participants: ['s'], payload: bytes('1'), deadlineMs: 10_000 }
    expect(await new TwoPhaseCommit(client, '/x').run(transaction)).toBe('committed')
    await site.release()
    expect(done).toEqual(['commit'])
  },
  'a site of transactions': async (client, observer, fixture) => {
    const done: string[] = []
    const note = (word: string) => () => Promise.resolve(void done.push(word))
    const prepare = (): Promise<'commit'> => Promise.resolve('commit')
    const site = await new TwoPhaseCommit(client, '/x').join('s', {
      prepare,
      commit: note('commit'),
      abort: note('abort'),
    })
    const transaction = { participants: ['s'], payload: bytes('1'), deadlineMs: 10_000 }
    expect(await new TwoPhaseCommit(observer, '/x').run(transaction)).toBe('committed')
    await after(fixture.world, 2000)
    await site.release()
    expect(new Set(done)).toEqual(new Set(['commit']))
  },
  'a partitioner': async (client, _observer, fixture) => {
    const stop = new AbortController()
    const working: string[] = []
    const options = { id: 'me', settleMs: 50, ...sessionPolicy }
    const running = started(
      new Partitioner(client, '/p', ['a', 'b'], options).run(
        async ({ item, signal }) => {
          working.push(item)
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
        },
        { signal: stop.signal },
      ),
    )
    await after(fixture.world, 3000)
    expect(new Set(working)).toEqual(new Set(['a', 'b']))
    stop.abort()
    await running
  },
}

/** What a client does with each recipe, by name. */
export const lives: Readonly<Record<string, Life>> = { ...locks, ...queues, ...shared }
