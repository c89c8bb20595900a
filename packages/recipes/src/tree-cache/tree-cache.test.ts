import { describe, expect, it } from 'vitest'
import { json, utf8, type Client, type Stat } from '@zabra/client/core'
import { client, cutOff, setupEachTest, other, run, world } from '../testing/setup.ts'
import { enumerateFaults, seedsOf, withSeeds } from '../testing/fault-fixture.ts'
import { advanceUntilSettled } from '../testing/settle.ts'
import { bytes, text, ManualWorld } from '../testing/world.ts'
import { depthBelow, EntryTable } from './entries.ts'
import { TreeCache, TreeTooLargeError, type CacheEvent } from './tree-cache.ts'
import { settledChildren, watchChildren, watchData } from './watchers.ts'

setupEachTest('a', 'b')
const words = (events: readonly CacheEvent<string>[]): string[] =>
  events.map((event) => ('path' in event ? `${event.type} ${event.path}` : event.type))

async function cacheOf(root = '/t'): Promise<{ cache: TreeCache<string>; events: CacheEvent<string>[] }> {
  const cache = new TreeCache(client, root, { codec: utf8 })
  const events = world.collect(cache.events())
  await run(cache.ready)
  await world.settle()
  return { cache, events }
}

describe('EntryTable', () => {
  const stat = (czxid: bigint, mzxid = czxid): Stat =>
    ({ czxid, mzxid, pzxid: 0n, version: 0, cversion: 0 }) as Stat

  it('reports a znode that was created again as updated although its version is the same (Curator issue 911)', () => {
    const entries = new EntryTable<string>('/')
    entries.read('/', { value: '', stat: stat(0n) }, 0)
    expect(entries.read('/a', { value: 'x', stat: stat(1n) }, 1)[0]?.type).toBe('added')
    expect(entries.read('/a', { value: 'x', stat: stat(1n) }, 2)).toEqual([])
    expect(entries.read('/a', { value: 'x', stat: stat(5n) }, 3)[0]?.type).toBe('updated')
  })

  it('ignores reads that are older than its entries', () => {
    const entries = new EntryTable<string>('/')
    entries.read('/', { value: '', stat: stat(0n) }, 0)
    entries.read('/a', { value: 'new', stat: stat(1n, 9n) }, 8)
    expect(entries.read('/a', { value: 'old', stat: stat(1n, 3n) }, 4)).toEqual([])
    expect(entries.get('/a')?.value).toBe('new')
  })

  it('removes what a full read did not see, but not what was reported since', () => {
    const entries = new EntryTable<string>('/')
    entries.read('/', { value: '', stat: stat(0n) }, 12)
    entries.read('/a', { value: '', stat: stat(1n) }, 1)
    entries.read('/b', { value: '', stat: stat(2n) }, 12)
    expect(entries.removeUnseen(new Set(), 10).map(({ path }) => path)).toEqual(['/a'])
  })

  it('removes a subtree, children first', () => {
    const entries = new EntryTable<string>('/')
    for (const path of ['/', '/a', '/a/b', '/a/b/c', '/ab'])
      entries.read(path, { value: '', stat: stat(1n) }, 1)
    expect(entries.removed('/a').map(({ path }) => path)).toEqual(['/a/b/c', '/a/b', '/a'])
    expect(entries.size).toBe(2)
  })

  it('removes a subtree with more znodes than a call may have arguments', () => {
    const entries = new EntryTable<string>('/')
    for (const path of ['/', '/a', '/a/b']) entries.read(path, { value: '', stat: stat(1n) }, 1)
    for (let n = 0; n < 200_000; n++) entries.read(`/a/b/${n}`, { value: '', stat: stat(1n) }, 1)
    expect(entries.removed('/a')).toHaveLength(200_002)
    expect(entries.size).toBe(1)
  })

  const pathsOf = (changes: readonly { type: string; path: string }[]): string[] =>
    changes.map(({ type, path }) => `${type} ${path}`)

  it('holds a znode back that was read before its parents, and adds it after them', () => {
    const entries = new EntryTable<string>('/a')
    const read = (path: string, order: number): string[] =>
      pathsOf(entries.read(path, { value: '', stat: stat(1n) }, order))
    expect([read('/a/b/c/d', 1), read('/a/b/c', 2)]).toEqual([[], []])
    expect(entries.get('/a/b/c/d')).toBeUndefined()
    expect(read('/a', 3)).toEqual(['added /a'])
    expect(read('/a/b', 4)).toEqual(['added /a/b', 'added /a/b/c', 'added /a/b/c/d'])
  })

  it('forgets what it holds back when it is removed, or a full read does not see it', () => {
    const entries = new EntryTable<string>('/a')
    const read = (path: string, order: number): string[] =>
      pathsOf(entries.read(path, { value: '', stat: stat(1n) }, order))
    for (const path of ['/a/b/c', '/a/b/c/d', '/a/x/y', '/a/x/z']) read(path, 1)
    expect(entries.removed('/a/b')).toEqual([])
    expect(entries.removeUnseen(new Set(['/a/x/z']), 5)).toEqual([])
    read('/a', 6)
    expect([read('/a/b', 7), read('/a/x', 8)]).toEqual([['added /a/b'], ['added /a/x', 'added /a/x/z']])
  })

  it('adds the children of a znode that cannot be read', () => {
    const entries = new EntryTable<string>('/a')
    entries.read('/a/b', { value: '', stat: stat(1n) }, 1)
    expect(pathsOf(entries.unreadable('/a'))).toEqual(['added /a/b'])
    expect(pathsOf(entries.removed('/a'))).toEqual(['removed /a/b'])
  })

  it('computes the depth of a path, and does not take /ab for a child of /a', () => {
    expect([depthBelow('/', '/a/b'), depthBelow('/a', '/a'), depthBelow('/a', '/ab')]).toEqual([
      2,
      0,
      undefined,
    ])
  })
})

describe('a tree cache', () => {
  it('holds the tree and follows every change', async () => {
    await run(client.create('/t/a/b', { data: bytes('1'), parents: true }))
    const { cache, events } = await cacheOf()
    expect(words(events).toSorted()).toEqual(['added /t', 'added /t/a', 'added /t/a/b', 'initialized'])
    expect(cache.children('/t/a')).toEqual(['b'])
    events.length = 0
    await run(other.setData('/t/a/b', bytes('2')))
    await run(other.create('/t/c', { data: bytes('3') }))
    await run(other.delete('/t/a/b'))
    await world.settle()
    expect(words(events)).toEqual(['updated /t/a/b', 'added /t/c', 'removed /t/a/b'])
    expect(cache.get('/t/c')?.value).toBe('3')
    expect(cache.children('/t')).toEqual(['a', 'c'])
    expect(cache.children('/t/x')).toBeUndefined()
    await run(cache.close())
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })

  it('becomes ready for a missing root, and follows its creation and deletion', async () => {
    const { cache, events } = await cacheOf()
    expect(words(events)).toEqual(['initialized'])
    await run(other.create('/t', { data: bytes('1') }))
    await world.settle()
    expect(cache.get('/t')?.value).toBe('1')
    await run(other.delete('/t'))
    await world.settle()
    expect(cache.size).toBe(0)
    await run(other.create('/t', { data: bytes('2') }))
    await world.settle()
    expect(cache.get('/t')?.value).toBe('2')
  })

  it('reports no false deletions in an outage, and the differences after it', async () => {
    await run(client.create('/t/a', { data: bytes('1'), parents: true }))
    await run(client.create('/t/b', { data: bytes('1') }))
    const { cache, events } = await cacheOf()
    events.length = 0
    const light = cutOff()
    await world.settle()
    expect(cache.stale).toBe(true)
    await run(other.delete('/t/a'))
    await run(other.setData('/t/b', bytes('2')))
    await run(other.create('/t/c', { data: bytes('1') }))
    await world.advance(2000)
    expect(words(events)).toEqual(['stale'])
    light()
    await world.advance(12_000)
    expect(words(events).toSorted()).toEqual([
      'added /t/c',
      'removed /t/a',
      'resynced',
      'stale',
      'updated /t/b',
    ])
    expect(words(events).at(-1)).toBe('resynced')
    expect(cache.stale).toBe(false)
  })

  it('detects a znode that was deleted and created again while disconnected', async () => {
    await run(client.create('/t', { data: bytes('same') }))
    const { events } = await cacheOf()
    events.length = 0
    const light = cutOff()
    await run(other.delete('/t'))
    await run(other.create('/t', { data: bytes('same') }))
    light()
    await world.advance(12_000)
    expect(words(events)).toEqual(['stale', 'updated /t', 'resynced'])
  })

  it('continues in a new session', async () => {
    await run(client.create('/t', { data: bytes('1') }))
    const { cache } = await cacheOf()
    const light = cutOff()
    await world.advance(20_000)
    const late = world.connect({ servers: 'late:2181' })
    light()
    await world.advance(12_000)
    await run((await late).setData('/t', bytes('2')))
    await world.settle()
    expect(cache.get('/t')?.value).toBe('2')
    expect(cache.stale).toBe(false)
    await run((await late).close())
  })

  it('reads once for many concurrent changes of one znode', async () => {
    await run(client.create('/t', { data: bytes('0') }))
    let reads = 0
    const counted = await world.client({
      instrumentation: { request: ({ operation }) => void (operation === 'getData' && reads++) },
    })
    const cache = new TreeCache(counted, '/t', { codec: utf8 })
    await run(cache.ready)
    reads = 0
    await run(Promise.all(Array.from({ length: 500 }, (_, n) => other.setData('/t', bytes(String(n))))))
    await world.settle()
    expect(cache.get('/t')?.value).toBe('499')
    expect(reads).toBeLessThan(250)
  })

  it('costs one notification and one read per change', async () => {
    await run(client.create('/t/a', { data: bytes(''), parents: true }))
    const log: string[] = []
    const counted = await world.client({
      instrumentation: {
        request: ({ operation }) => void log.push(operation),
        event: () => void log.push('event'),
      },
    })
    const cache = new TreeCache(counted, '/t')
    await run(cache.ready)
    log.length = 0
    await run(other.setData('/t/a', bytes('1')))
    await world.settle()
    expect(log).toEqual(['event', 'getData'])
  })

  it('keeps no more than depth and filter allow', async () => {
    await run(client.create('/t/a/b', { parents: true }))
    await run(client.create('/t/skip/x', { parents: true }))
    const cache = new TreeCache(client, '/t', { depth: 1, filter: (path) => !path.endsWith('skip') })
    await run(cache.ready)
    await run(client.create('/t/skip/y'))
    await run(client.create('/t/c'))
    await world.settle()
    expect([...cache.entries()].map(([path]) => path)).toEqual(['/t', '/t/a', '/t/c'])
    await run(cache.close())
  })

  it('ends with a TreeTooLargeError when the tree outgrows it (CURATOR-690)', async () => {
    for (const name of ['a', 'b', 'c']) await run(client.create(`/t/${name}`, { parents: true }))
    const cache = new TreeCache(client, '/t', { maxNodes: 2 })
    await expect(run(cache.ready)).rejects.toBeInstanceOf(TreeTooLargeError)
    const late = world.collect<unknown>(cache.events())
    await world.settle()
    expect(late.at(-1)).toBeInstanceOf(TreeTooLargeError)
  })

  it('keeps the last valid value of an undecodable znode, and reports it', async () => {
    await run(client.create('/t', { data: bytes('1') }))
    const cache = new TreeCache(client, '/t', { codec: json<number>() })
    const events = world.collect(cache.events())
    await run(cache.ready)
    await run(client.setData('/t', bytes('{')))
    await world.settle()
    expect(cache.get('/t')?.value).toBe(1)
    expect(events.at(-1)).toMatchObject({ type: 'unreadable', path: '/t' })
  })

  it('replays the current znodes to a late consumer', async () => {
    await run(client.create('/t/a', { data: bytes('1'), parents: true }))
    const { cache } = await cacheOf()
    const late = world.collect(cache.events())
    await world.settle()
    expect(words(late)).toEqual(['added /t', 'added /t/a', 'initialized'])
    await run(cache.close())
  })

  it('recovers from an overflow of its event buffer', async () => {
    await run(client.create('/t', { data: bytes('') }))
    const { cache } = await cacheOf()
    await run(Promise.all(Array.from({ length: 3000 }, (_, n) => other.create(`/t/${n}`))))
    await world.advance(1000)
    expect(cache.size).toBe(3001)
  })
})

describe('watchers of one znode', () => {
  it('watchData yields the newest data and reports deletion', async () => {
    const abort = new AbortController()
    const seen: (string | undefined)[] = []
    const loop = (async () => {
      for await (const found of watchData(client, '/w', { signal: abort.signal }))
        seen.push(found && text(found.data))
    })()
    loop.catch(() => {})
    await world.settle()
    await run(other.create('/w', { data: bytes('1') }))
    await world.settle()
    await run(other.setData('/w', bytes('2')))
    await world.settle()
    await run(other.delete('/w'))
    await world.settle()
    expect(seen).toEqual([undefined, '1', '2', undefined])
    abort.abort()
    await world.settle()
    await run(loop)
    expect(world.server.stats().watches).toBe(0)
  })

  it('watchChildren yields child names, and leaves no watch when the loop ends', async () => {
    await run(client.create('/w/a', { parents: true }))
    const seen: unknown[] = []
    const loop = (async () => {
      for await (const names of watchChildren(client, '/w')) if (seen.push(names) === 2) break
    })()
    await world.settle()
    await run(other.create('/w/b'))
    await run(loop)
    await world.settle()
    expect(seen).toEqual([['a'], ['a', 'b']])
    expect(world.server.stats().watches).toBe(0)
  })

  it('settledChildren waits until the children stop changing', async () => {
    await run(client.create('/w', { data: bytes('') }))
    const settled = settledChildren(client, '/w', 1000)
    for (const name of ['a', 'b', 'c']) {
      await world.advance(600)
      await run(other.create(`/w/${name}`))
    }
    expect(await world.within(1200, settled)).toEqual(['a', 'b', 'c'])
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })
})

const cached = (cache: TreeCache<string>): Map<string, string> =>
  new Map([...cache.entries()].map(([path, { value }]) => [path, value]))

async function contents(on: Client): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for await (const path of on.walk('/t')) found.set(path, text((await on.getData(path)).data))
  return found
}

it('a tree cache equals the tree in the end under any fault at any request', async () => {
  const played = await enumerateFaults(
    async (fixture, { client: victim }) => {
      const writer = await fixture.world.client()
      await writer.create('/t/a', { data: bytes('1'), parents: true })
      const cache = new TreeCache(victim, '/t', { codec: utf8 })
      await cache.ready
      await writer.setData('/t/a', bytes('2'))
      await writer.create('/t/b/c', { data: bytes('3'), parents: true })
      await writer.delete('/t/a')
      await writer.create('/t/a', { data: bytes('4') })
      await fixture.waitUntilQuiet()
      expect(cached(cache)).toEqual(await contents(writer))
      expect(cache.stale).toBe(false)
      await cache.close()
    },
    [
      'cut before the server reads it',
      'cut after it was applied, before the reply',
      'cut after the reply',
      'session expired before the server reads it',
      'session expired after it was applied',
    ],
  )
  expect(played).toBeGreaterThan(40)
})

/** Throws when an event shows a znode before its parent, or its removal before that of a child. */
function checkOrder(events: readonly CacheEvent<unknown>[], root: string): void {
  const known = new Set<string>()
  for (const event of events) {
    if (event.type === 'added') {
      const parent = event.path.slice(0, event.path.lastIndexOf('/'))
      if (event.path !== root && !known.has(parent))
        throw new Error(`${event.path} was added before its parent`)
      known.add(event.path)
    } else if (event.type === 'removed') {
      known.delete(event.path)
      const child = [...known].find((path) => path.startsWith(`${event.path}/`))
      if (child !== undefined) throw new Error(`${event.path} was removed before ${child}`)
    }
  }
}

/** Lets a cache read 80 new znodes anew, and breaks its connection for good after this many chunks of replies. */
async function expireInFullRead(chunks: number): Promise<boolean> {
  const own = await ManualWorld.start()
  const reader = await own.client({ servers: 'reader:2181' })
  const writer = await own.client({ servers: 'writer:2181' })
  // The last level needs no listings, which would fail the whole read together with the session.
  const cache = new TreeCache(reader, '/t', { codec: utf8, depth: 2 })
  const events = own.collect(cache.events())
  await own.outcome(cache.ready)
  let left = chunks
  let isCut = false
  const refuseReader = (): void => {
    own.faults.open = (server) => {
      if (server.host === 'reader') throw new Error('cut off by the test')
    }
  }
  refuseReader()
  own.connections[0]!.cut()
  for (let n = 0; n < 40; n++)
    await own.outcome(writer.create(`/t/${n}/child`, { data: bytes(''), parents: true }))
  own.network.chunkBytes = 300
  delete own.faults.open
  own.faults.toClient = (chunk, connection) => {
    if (connection.server.host !== 'reader' || isCut || left-- > 0) return chunk
    isCut = true
    connection.cut()
    refuseReader()
    own.clock.after(20_000, 'end of the outage', () => delete own.faults.open)
    return undefined
  }
  await own.advance(60_000)
  checkOrder(events, '/t')
  expect(cache.size).toBe(81)
  await own.outcome(cache.close())
  await own.end()
  return isCut
}

it('a tree cache adds parents first wherever its session expires in the middle of a full read', async () => {
  let chunks = 0
  while (await expireInFullRead(chunks)) chunks++
  expect(chunks).toBeGreaterThan(20)
})

it('a tree cache and its events equal a model after random changes, cuts and chunkings', async () => {
  await withSeeds(seedsOf(10), async (random) => {
    const own = await ManualWorld.start()
    const reader = await own.client()
    const writer = await own.client()
    own.network.chunkBytes = [1, 7, 100, 64 * 1024][random.below(4)]!
    const cache = new TreeCache(reader, '/t', { codec: utf8 })
    const reported = new Map<string, string>()
    const events = own.collect(cache.events())
    const names = ['/t', '/t/a', '/t/b', '/t/a/x', '/t/a/y', '/t/b/x']
    for (let step = 0; step < 60; step++) {
      const path = names[random.below(names.length)]!
      const write = [
        () => writer.create(path, { data: bytes(`c${step}`) }),
        () => writer.setData(path, bytes(`s${step}`)),
        () => writer.delete(path),
      ][random.below(3)]!()
      void Promise.resolve(write).catch(() => {})
      if (random.below(6) === 0) own.connections[0]!.cut()
      if (random.below(6) === 0) own.connections.at(-1)!.cut()
      if (random.below(3) === 0) await own.settle()
      if (random.below(8) === 0) await own.advance(random.below(400))
    }
    await own.advance(20_000)
    await own.within(5000, writer.create('/t', { data: bytes('end') }).catch(() => {}) as Promise<unknown>)
    await own.settle()
    for (const event of events) {
      if (event.type === 'removed') reported.delete(event.path)
      else if (event.type === 'added' || event.type === 'updated') reported.set(event.path, event.value)
    }
    const truth = await advanceUntilSettled(own, 10_000, contents(writer))
    checkOrder(events, '/t')
    expect(cached(cache)).toEqual(truth)
    expect(reported).toEqual(truth)
    await own.outcome(cache.close())
    await own.end()
  })
})

it('example: a table of services that follows the tree', async () => {
  const cache = new TreeCache<{ port: number }>(client, '/services', {
    codec: json<{ port: number }>(),
    depth: 1,
  })
  await run(cache.ready)
  await run(other.create('/services', { data: bytes('null') }))
  await run(other.create('/services/api', { data: bytes('{"port":80}'), mode: 'ephemeral' }))
  await world.settle()
  expect(cache.get('/services/api')?.value.port).toBe(80)
  await run(other.close())
  await world.settle()
  expect(cache.children('/services')).toEqual([])
  await run(cache.close())
})

it('a tree cache is ready only after a full read under any fault at any request', async () => {
  const played = await enumerateFaults(async (fixture, victim) => {
    const peer = await fixture.world.client()
    for (const path of ['/t', '/t/a', '/t/b', '/t/a/c']) await peer.create(path, { data: bytes('x') })
    const cache = new TreeCache(victim.client, '/t')
    await cache.ready
    expect([...cache.entries()].map(([path]) => path)).toEqual(['/t', '/t/a', '/t/a/c', '/t/b'])
    await cache.close()
    await fixture.waitUntilQuiet()
  })
  expect(played).toBeGreaterThan(30)
})

it('a tree cache without data follows stats and children, and reads no data', async () => {
  await run(other.create('/t/a', { data: bytes('large'), parents: true }))
  const requests: string[] = []
  const own = await world.client({
    instrumentation: { request: ({ operation }) => void requests.push(operation) },
  })
  const cache = new TreeCache(own, '/t', { data: false })
  const events = world.collect(cache.events())
  await run(cache.ready)
  await run(other.setData('/t/a', bytes('larger')))
  await run(other.create('/t/b'))
  await run(other.delete('/t/b'))
  await world.settle()
  expect(cache.get('/t/a')).toMatchObject({ value: new Uint8Array(0), stat: { version: 1, dataLength: 6 } })
  expect(words(events as CacheEvent<string>[])).toContain('updated /t/a')
  expect(cache.children('/t')).toEqual(['a'])
  expect(requests).not.toContain('getData')
  await run(cache.close())
})
