import { describe, expect, it, vi } from 'vitest'
import { json, utf8, type Client } from '@zabra/client/core'
import { client, cutOff, other, run, setupEachTest, world } from '../testing/setup.ts'
import {
  connectionFaults,
  enumerateFaults,
  seedsOf,
  cutAtRandom,
  withSeeds,
} from '../testing/fault-fixture.ts'
import { advanceUntilSettled } from '../testing/settle.ts'
import { bytes, ManualWorld } from '../testing/world.ts'
import { TreeCache } from '../tree-cache/tree-cache.ts'
import { difference } from './decide.ts'
import { Group, MemberIdConflictError, type GroupChange } from './group.ts'

setupEachTest('a', 'b')
const groupOf = (on: Client, settleMs = 0): Group<string> => new Group(on, '/g', { codec: utf8, settleMs })
const last = (changes: readonly GroupChange<string>[]): string[] =>
  [...(changes.at(-1)?.members.keys() ?? [])].toSorted()

it('difference lists members that joined, left and changed', () => {
  const before = new Map([
    ['a', 1],
    ['b', 1],
    ['c', 1],
  ])
  const now = new Map([
    ['b', 1],
    ['c', 2],
    ['d', 1],
  ])
  expect(difference(before, now)).toEqual({ joined: ['d'], left: ['a'], changed: ['c'] })
})

describe('a group', () => {
  it('reports joins, changes and leaves', async () => {
    const changes = world.collect(groupOf(other).changes())
    await world.settle()
    expect(changes).toMatchObject([{ joined: [], left: [] }])
    const me = await run(groupOf(client).join('a/1', 'one'))
    await world.settle()
    expect(changes.at(-1)).toMatchObject({ joined: ['a/1'] })
    expect(changes.at(-1)!.members.get('a/1')).toBe('one')
    await run(me.update('two'))
    await world.settle()
    expect(changes.at(-1)).toMatchObject({ joined: [], left: [], changed: ['a/1'] })
    expect(await run(groupOf(other).members())).toEqual(new Map([['a/1', 'two']]))
    await run(me.release())
    await world.settle()
    expect(changes.at(-1)).toMatchObject({ left: ['a/1'] })
  })

  it('is read once for all changes that a slow consumer finds', async () => {
    const lists = vi.spyOn(TreeCache.prototype, 'children')
    const stop = new AbortController()
    const changes = groupOf(other).changes({ signal: stop.signal })
    await run(changes.next())
    const group = groupOf(client)
    for (let n = 0; n < 50; n++) await run(group.join(`m${n}`, ''))
    await world.settle()
    lists.mockClear()
    expect((await run(changes.next())).value).toMatchObject({ joined: { length: 50 }, left: [], changed: [] })
    const next = changes.next()
    await world.settle()
    expect(lists.mock.calls.length).toBeLessThan(3)
    stop.abort()
    expect((await run(next)).done).toBe(true)
    await run(group.close())
    lists.mockRestore()
  })

  it('causes no warning of Node when many callers follow the changes', async () => {
    const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const group = groupOf(client)
    const callers = Array.from({ length: 20 }, () => world.collect(group.changes()))
    await world.settle()
    expect(callers.every((changes) => changes.length === 1)).toBe(true)
    expect(warning).not.toHaveBeenCalled()
    warning.mockRestore()
    await run(group.close())
  })

  it('rejects an id that another live member has, unlike kazoo and Curator', async () => {
    await run(groupOf(other).join('a', 'theirs'))
    const joining = groupOf(client).join('a', 'mine')
    joining.catch(() => {})
    await expect(run(joining)).rejects.toBeInstanceOf(MemberIdConflictError)
    expect(await run(groupOf(other).members())).toEqual(new Map([['a', 'theirs']]))
  })

  it('lets a waiting member join when the id is free', async () => {
    const first = await run(groupOf(other).join('a', 'theirs'))
    const second = groupOf(client).join('a', 'mine', { onConflict: 'wait' })
    await world.settle()
    await run(first.release())
    await run(second)
    expect(await run(groupOf(other).members())).toEqual(new Map([['a', 'mine']]))
  })

  it('rejoins after a session expiry, and reports only real changes', async () => {
    await run(groupOf(client).join('a', 'one'))
    const changes = world.collect(groupOf(other).changes())
    await world.settle()
    const restore = cutOff()
    await world.advance(20_000)
    expect(last(changes)).toEqual([])
    restore()
    await world.advance(12_000)
    expect(last(changes)).toEqual(['a'])
  })

  it('reports nothing while its observer is disconnected', async () => {
    await run(groupOf(client).join('a', 'one'))
    const changes = world.collect(groupOf(other).changes())
    await world.settle()
    const restore = cutOff('b')
    await run(groupOf(client).join('c', 'one'))
    await world.settle()
    expect(changes).toHaveLength(1)
    restore()
    await world.advance(12_000)
    expect(changes).toHaveLength(2)
    expect(changes.at(-1)).toMatchObject({ joined: ['c'], left: [], changed: [] })
  })

  it('reports nothing after an outage in which nothing has changed', async () => {
    await run(groupOf(client).join('a', 'one'))
    const changes = world.collect(groupOf(other).changes())
    await world.settle()
    cutOff('b')()
    await world.advance(12_000)
    expect(changes).toHaveLength(1)
  })

  it('reports a burst of joins once it settles, and reads each member once', async () => {
    let reads = 0
    const counted = await world.client({
      instrumentation: { request: ({ operation }) => void (operation.startsWith('get') && reads++) },
    })
    const changes = world.collect(groupOf(counted, 1000).changes())
    await world.settle()
    reads = 0
    await run(Promise.all(Array.from({ length: 200 }, (_, n) => groupOf(client).join(`m${n}`, ''))))
    await world.advance(1500)
    expect(changes).toHaveLength(2)
    expect(changes[1]!.joined).toHaveLength(200)
    expect(reads).toBeLessThanOrEqual(200 + 2)
  })

  it('ignores foreign znodes in its directory', async () => {
    await run(client.create('/g/%zz', { data: bytes('?'), parents: true }))
    expect(await run(groupOf(other).members())).toEqual(new Map())
  })

  it('skips a member whose value its codec cannot read, in members() as in changes()', async () => {
    const group = new Group(client, '/g', { codec: json<{ port: number }>() })
    await run(group.join('a', { port: 1 }))
    await run(groupOf(other).join('b', 'no JSON'))
    const changes = world.collect(group.changes())
    await world.settle()
    expect(changes.at(-1)?.members).toEqual(new Map([['a', { port: 1 }]]))
    expect(await run(group.members())).toEqual(new Map([['a', { port: 1 }]]))
  })

  it('refuses a member after it was closed, and leaves no znode of it', async () => {
    const group = groupOf(client)
    await group.close()
    await expect(run(group.join('a', 'late'))).rejects.toMatchObject({
      code: 'USAGE',
      message: 'Expected an open group on /g, got a closed one',
    })
    expect(await run(groupOf(other).members())).toEqual(new Map())
  })

  it('leaves with all its members on disposal, and ends its loops', async () => {
    const group = groupOf(client)
    await run(group.join('a', '1'))
    await run(group.join('b', '1'))
    let ended = false
    void (async () => {
      for await (const change of group.changes()) void change
      ended = true
    })()
    await world.settle()
    await run(group[Symbol.asyncDispose]())
    await world.settle()
    expect(ended).toBe(true)
    expect(await run(groupOf(other).members())).toEqual(new Map())
    expect(world.server.stats().watches).toBe(0)
  })

  it('ends a loop over changes when the signal aborts', async () => {
    const abort = new AbortController()
    const loop = (async () => {
      for await (const change of groupOf(client).changes({ signal: abort.signal })) void change
    })()
    loop.catch(() => {})
    await world.settle()
    abort.abort()
    await run(loop)
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })
})

it('example: workers that know each other', async () => {
  const group = new Group<{ port: number }>(client, '/workers', { codec: json<{ port: number }>() })
  const me = await run(group.join('worker-7', { port: 8080 }))
  const seen = await run(
    new Group<{ port: number }>(other, '/workers', { codec: json<{ port: number }>() }).members(),
  )
  expect(seen.get('worker-7')).toEqual({ port: 8080 })
  await run(me.release())
})

it('shows a member exactly while it is joined under any fault at any request', async () => {
  await enumerateFaults(async (fixture, victim) => {
    const observer = await fixture.world.client()
    const stop = new AbortController()
    const changes = fixture.world.collect(groupOf(observer).changes({ signal: stop.signal }))
    const me = await groupOf(victim.client).join('a', 'one')
    await me.update('two')
    await fixture.waitUntilQuiet()
    expect(changes.at(-1)!.members).toEqual(new Map([['a', 'two']]))
    await me.release()
    await fixture.waitUntilQuiet()
    expect(last(changes)).toEqual([])
    stop.abort()
    await fixture.waitUntilQuiet()
  }, connectionFaults)
})

it('converges for all observers after random joins, leaves and cuts', async () => {
  await withSeeds(seedsOf(5), async (random) => {
    const own = await ManualWorld.start()
    const clients = await Promise.all(Array.from({ length: 3 + random.below(8) }, () => own.client()))
    const views = clients.map((each) => own.collect(groupOf(each).changes()))
    const inside = new Set<number>()
    const work = clients.map(async (each, n) => {
      for (let round = 0; round < 3; round++) {
        const me = await groupOf(each).join(`m${n}`, String(round))
        if (round === 2 && n % 2 === 0) return void inside.add(n)
        await me.release()
      }
    })
    const all = Promise.all(work)
    all.catch(() => {})
    await cutAtRandom(own, random, 15, 400)
    await advanceUntilSettled(own, 60_000, all)
    await own.advance(12_000)
    const expected = [...inside].map((n) => `m${n}`).toSorted()
    for (const view of views) expect(last(view)).toEqual(expected)
    await own.end()
  })
})
