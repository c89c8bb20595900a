import { json, utf8, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import {
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
  PersistentNode,
  Queue,
  ReadWriteLock,
  Semaphore,
  TreeCache,
  UniqueIds,
  watchChildren,
} from './index.ts'
import { NameService } from './name-service/index.ts'
import { Partitioner } from './partitioner/index.ts'
import { RevocableMutex, revoke } from './revocable/index.ts'
import { ServiceDiscovery, ServiceProvider } from './service-discovery/index.ts'
import { client, other, setupEachTest, world } from './testing/setup.ts'
import { TwoPhaseCommit } from './two-phase-commit/index.ts'

setupEachTest('a', 'b')

/** Uses a recipe at the root of a client and of another one. */
const uses: Record<string, (of: Client, other: Client) => Promise<unknown>> = {
  'a mutex': (of) => new Mutex(of, '/').run(() => Promise.resolve()),
  'a read/write lock': (of) => new ReadWriteLock(of, '/').read.run(() => Promise.resolve()),
  'a revocable mutex': async (of, them) => {
    const held = await new RevocableMutex(of, '/').acquire()
    const revoked = revoke(them, '/')
    await held.revokeRequested
    await held.release()
    expect(await revoked).toBe('released')
  },
  'an election': async (of, them) => {
    const held = await new LeaderElection(of, '/', { id: 'x', announce: true }).acquire()
    const seen = new LeaderElection(them, '/', { announce: true }).observe()
    expect((await seen.next()).value).toMatchObject({ id: 'x' })
    await seen.return(undefined)
    await held.release()
  },
  'a semaphore': async (of, them) => {
    const held = await new Semaphore(of, '/', { permits: 2 }).acquire({ permits: 2 })
    const theirs = new Semaphore(them, '/', { permits: 2 })
    expect(await theirs.tryAcquire()).toBeUndefined()
    expect(await theirs.holders()).toMatchObject([{ permits: 2, path: held.path }])
    await held.release()
    await (await theirs.acquire()).release()
  },
  'a semaphore of Curator': async (of) => {
    const held = await new Semaphore(of, '/', { permits: 1, naming: 'curator' }).acquire()
    expect(held.path).toMatch(/^\/leases\//)
    await held.release()
  },
  'a lease': async (of) => (await new Lease(of, '/', { holder: 'x', durationMs: 1000 }).acquire()).release(),
  'a reverse barrier': (of) => new Barrier(of, '/').waitForPresence(),
  'a double barrier': async (of, them) => {
    const enter = (one: Client) => new DoubleBarrier(one, '/', { members: 2 }).enter()
    const inside = await Promise.all([enter(of), enter(them)])
    expect(inside.map(({ round }) => round)).toEqual([0, 0])
    await Promise.all(inside.map((handle) => handle.release()))
  },
  'a group': async (of, them) => {
    const group = new Group(of, '/', { codec: utf8 })
    const theirs = new Group(them, '/', { codec: utf8 })
    await group.join('x', 'here')
    expect([...(await theirs.members())]).toEqual([['x', 'here']])
    const changes = theirs.changes()
    expect([...(await changes.next()).value!.members]).toEqual([['x', 'here']])
    await changes.return(undefined)
    await group.close()
  },
  'a party': async (of) => {
    const held = await new Party(of, '/').join('x')
    expect(await new Party(of, '/').members()).toEqual(['x'])
    await held.release()
    const shallow = await new Party(of, '/', { layout: 'shallow' }).join('x')
    expect(await new Party(of, '/', { layout: 'shallow' }).members()).toEqual(['x'])
    await shallow.release()
  },
  'a persistent node': async (of) => {
    const node = new PersistentNode(of, '/n-', 'x', { mode: 'ephemeralSequential' })
    expect(await node.ready).toMatch(/^\/[^/]*n-\d+$/)
    await node.close()
  },
  'a queue': async (of) => {
    const queue = new Queue(of, '/', { codec: utf8 })
    await queue.put('x', { delayMs: 1 })
    expect(await queue.take()).toBe('x')
  },
  'a value': async (of) => {
    const value = new AtomicValue(of, '/', { codec: utf8, initial: '' })
    expect(await value.update((now) => `${now}x`)).toBe('x')
  },
  'a counter': async (of) => expect(await new Counter(of, '/').add(2n)).toBe(2n),
  'unique ids': async (of) => expect(await new UniqueIds(of, '/').next()).toBe(0n),
  'a configuration': async (of) => {
    const config = new Configuration<number>(of, '/', { codec: json<number>(), defaults: 1 })
    await config.set(2)
    expect(await config.update((now) => now + 1)).toBe(3)
  },
  'a tree cache': async (of) => {
    await of.create('/x')
    const cache = new TreeCache(of, '/')
    await cache.ready
    expect(cache.children('/')).toContain('x')
    await cache.close()
  },
  'children of a znode': async (of) => {
    const children = watchChildren(of, '/')
    expect((await children.next()).done).toBe(false)
    await children.return(undefined)
  },
  names: async (of, them) => {
    const names = new NameService(of, '/', utf8)
    const mine = await names.register('x', 'here')
    await names.register('y', 'there', { ephemeral: true })
    await names.rename('x', 'z')
    const theirs = new NameService(them, '/', utf8)
    expect(await theirs.names()).toEqual(['y', 'z'])
    expect(await theirs.resolve('z', { fresh: true })).toBe('here')
    await mine.release()
  },
  'a service': async (of, them) => {
    const discovery = new ServiceDiscovery(of, '/')
    await discovery.register({ name: 'api', id: 'x', address: 'h', port: 1 })
    const api = await new ServiceDiscovery(them, '/').provider('api')
    expect(api.next()?.id).toBe('x')
    expect(await discovery.names()).toEqual(['api'])
    await api.close()
    await discovery.close()
  },
  'a provider': async (of) => {
    await of.create('/x', { data: 'here' })
    const codec = {
      encode: () => new Uint8Array(0),
      decode: (data: Uint8Array) => ({ id: utf8.decode(data) }),
    }
    const provider = new ServiceProvider(of, '/', codec as never, { filter: ({ id }) => id !== '' })
    await provider.ready
    expect(provider.all()).toEqual([{ id: 'here' }])
    await provider.close()
  },
  'a partitioner': async (of) => {
    const stop = new AbortController()
    const items: string[] = []
    await new Partitioner(of, '/', ['i'], { settleMs: 0 }).run(
      async ({ item, lock }) => {
        items.push(item, lock.path.slice(0, 9))
        stop.abort()
      },
      { signal: stop.signal },
    )
    expect(items).toEqual(['i', '/locks/i/'])
  },
  'a transaction': async (of, them) => {
    const commit = () => Promise.resolve('commit' as const)
    const nothing = () => Promise.resolve()
    const site = await new TwoPhaseCommit(them, '/').join('x', {
      prepare: commit,
      commit: nothing,
      abort: nothing,
    })
    const request = { participants: ['x'], payload: 'p', deadlineMs: 5000 }
    expect(await new TwoPhaseCommit(of, '/').run(request)).toBe('committed')
    await site.release()
  },
}

describe.each(['the root', 'a chroot'])('at the path / of %s', (where) => {
  it.each(Object.entries(uses))('works: %s', async (_name, use) => {
    const roots = [client, other].map((each) => (where === 'the root' ? each : each.chroot('/app/x')))
    if (where === 'a chroot') await world.within(1000, client.createMissing(['/app/x']))
    await world.within(60_000, use(roots[0]!, roots[1]!))
  })
})

it('the name of the znode of the servers is free in a chroot', async () => {
  const root = client.chroot('/app')
  await world.within(1000, root.createMissing(['/']))
  const names = new NameService(root, '/', utf8)
  await world.within(1000, names.register('zookeeper', 'here'))
  expect(await world.within(1000, names.names())).toEqual(['zookeeper'])
})

it('a semaphore of kazoo is refused there, since its queue would be among its permits', () => {
  expect(() => new Semaphore(client, '/', { permits: 1, naming: 'kazoo' })).toThrow(/below the root/)
})
