import { OpCode, WatcherType } from '@zabra/protocol'
import { afterEach, describe, expect, it } from 'vitest'
import { formatSessionId } from '../../../connections/log-context.ts'
import { WatchedPaths } from '../../../connections/watched-paths.ts'
import type { ClientChannel } from '../../../connections/client-channel.ts'
import { WatchManager } from '../../../core/watches/index.ts'
import { TestServer } from '../../../testing/test-server.ts'
import type { ServerReport } from '../../server-report.ts'
import { parsePosition, watchPage, type WatchPage, type WatchQuery } from './watch-pages.ts'

/** A server with watches alone, that counts what is looked at between two steps. */
class Watches {
  readonly manager = new WatchManager<ClientChannel>()
  readonly channels = new Map<bigint, ClientChannel>()
  /** Whether a page may look at all connections. */
  mayScan = true
  looked = 0
  mostLooked = 0

  connect(sessionId: bigint): ClientChannel {
    const paths = new WatchedPaths()
    const counted = (): Generator<string> => this.#counted(paths)
    const watchedPaths = new Proxy(paths, {
      get: (of, key) => {
        if (key === Symbol.iterator) return counted
        const value = Reflect.get(of, key, of) as unknown
        return typeof value === 'function' ? (value.bind(of) as unknown) : value
      },
    })
    const channel = {
      sessionId,
      watchedPaths,
      get watchBytes() {
        return paths.bytes
      },
    } as unknown as ClientChannel
    this.channels.set(sessionId, channel)
    return channel
  }

  *#counted<T>(items: Iterable<T>): Generator<T> {
    for (const item of items) {
      this.looked++
      yield item
    }
  }

  get server(): ServerReport {
    const { channels } = this
    const all = (): Iterator<ClientChannel> => {
      if (!this.mayScan) throw new Error('All connections are looked at')
      return this.#counted(channels.values())
    }
    return {
      watches: this.manager,
      tree: { store: { hash: (path: string) => path.length } },
      connections: {
        get size() {
          return channels.size
        },
        [Symbol.iterator]: all,
        ofSession: (id: bigint) => channels.get(id),
      },
    } as unknown as ServerReport
  }

  page(query: Partial<Omit<WatchQuery, 'after'>> & { readonly after?: string }): WatchPage {
    const { after: position, ...rest } = query
    const after = position === undefined ? undefined : parsePosition(position)
    const given = { path: undefined, session: undefined, kind: undefined, limit: 10, ...rest, after }
    const steps = watchPage(this.server, given)
    for (;;) {
      this.looked = 0
      const step = steps.next()
      this.mostLooked = Math.max(this.mostLooked, this.looked)
      if (step.done === true) return step.value
    }
  }

  /** Returns all pages, each made after `between` was called. */
  list(query: Parameters<Watches['page']>[0], between = (): void => {}): string[] {
    const found: string[] = []
    for (let next: string | null | undefined, pages = 0; next !== null; pages++) {
      if (pages > 2000) throw new Error(`The list does not end: it is at ${next}`)
      const page = this.page(next === undefined ? query : { ...query, after: next })
      found.push(...page.watches.map(({ session, path }) => `${session}${path}`))
      next = page.next
      between()
    }
    return found
  }
}

describe('the list of watches', () => {
  let server: TestServer | undefined
  afterEach(() => server?.stop())

  it('has path, session and kinds of each, and is filtered by each of them', async () => {
    server = await TestServer.start()
    const [one, other] = [await server.connect(), await server.connect()]
    const [a, b] = [one, other].map((client) => formatSessionId(client.session!.sessionId))
    one.create(1, '/a')
    one.read(2, OpCode.getData, '/a', true)
    one.read(3, OpCode.getChildren, '/a', true)
    one.read(4, OpCode.exists, '/none', true)
    const addWatch = (path: string, mode: number) =>
      other.ask(5, OpCode.addWatch, (w) => {
        w.string(path)
        w.int(mode)
      })
    addWatch('/a', 0)
    addWatch('/r', 1)
    await server.untilIdle()
    const list = async (query = ''): Promise<unknown> => {
      await server!.untilIdle()
      const { status, text } = await server!.http.request(`/api/v1/watches${query}`)
      const { watches, next } = JSON.parse(text) as WatchPage
      expect([status, next]).toEqual([200, null])
      return watches.map(({ session, path, kinds }) => [session, path, ...kinds])
    }
    const data = [a, '/a', 'data', 'child']
    const [exist, persistent] = [
      [a, '/none', 'exist'],
      [b, '/a', 'persistent'],
    ]
    expect(await list()).toEqual([data, exist, persistent, [b, '/r', 'persistentRecursive']])
    expect(await list('?path=/a')).toEqual([data, persistent])
    expect(await list(`?session=${a}`)).toEqual([data, exist])
    expect(await list(`?session=${b}&path=/a`)).toEqual([persistent])
    expect(await list('?kind=exist')).toEqual([exist])
    expect(await list('?session=0x1&path=/a')).toEqual([])
    const first = JSON.parse((await server.http.request('/api/v1/watches?limit=1')).text) as WatchPage
    expect(await list(`?after=${encodeURIComponent(first.next!)}`)).toEqual([
      exist,
      persistent,
      [b, '/r', 'persistentRecursive'],
    ])
  })

  it('is refused for what cannot be understood, with what was expected', async () => {
    server = await TestServer.start()
    for (const query of ['session=1', 'kind=all', 'limit=0', 'limit=1001', 'after=/a']) {
      const { status, text } = await server.http.request(`/api/v1/watches?${query}`)
      expect([query, status]).toEqual([query, 400])
      expect(text).toContain('Expected')
    }
  })

  it('has each watch that stays on one page, while others come and go', () => {
    const watches = new Watches()
    const staying: string[] = []
    const channels = Array.from({ length: 40 }, (_, i) => watches.connect(BigInt(1000 * i)))
    for (const [i, channel] of channels.entries())
      for (let k = 0; k < i; k++) {
        watches.manager.watchData(channel, `/stays/${k}`)
        staying.push(`${formatSessionId(channel.sessionId)}/stays/${k}`)
      }
    let round = 0
    const change = (): void => {
      round++
      for (const [i, channel] of channels.entries()) {
        watches.manager.watchChildren(channel, `/comes/${round}`)
        if (i % 2 === 0) watches.manager.watchRecursively(channel, `/a/${round}`)
        watches.manager.remove(channel, `/a/${round - 2}`, WatcherType.Any)
      }
      watches.manager.fireChildrenChanged(`/comes/${round - 3}`, () => {})
      watches.manager.watchData(watches.connect(BigInt(round)), '/new')
      watches.channels.delete(BigInt(round - 1))
    }
    const found = watches.list({ limit: 7 }, change)
    expect(found.filter((one) => one.includes('/stays/')).toSorted()).toEqual(staying.toSorted())
    expect(new Set(found).size).toBe(found.length)
  })

  it('has a watch once that was set again behind the place of the search', () => {
    const watches = new Watches()
    const channel = watches.connect(1n)
    const paths = Array.from({ length: 60 }, (_, i) => `/${String(i).padStart(2, '0')}`)
    for (const path of paths) watches.manager.watchData(channel, path)
    const query = { path: undefined, session: undefined, kind: undefined, limit: 100, after: undefined }
    const steps = watchPage(watches.server, query)
    // The first paths of the connection are found.
    steps.next()
    for (const path of ['/00', '/59']) watches.manager.remove(channel, path, WatcherType.Any)
    watches.manager.watchData(channel, '/00')
    let step = steps.next()
    while (step.done !== true) step = steps.next()
    expect(step.value.watches.map(({ path }) => path)).toEqual(paths.slice(0, 59))
  })

  it('of a path, and of a session, looks at no other connection', () => {
    const watches = new Watches()
    for (let i = 0n; i < 5000n; i++) {
      const channel = watches.connect(i)
      watches.manager.watchChildren(channel, '/crowded')
      watches.manager.watchData(channel, `/own/${i}`)
    }
    watches.mayScan = false
    expect(watches.list({ path: '/crowded', limit: 1000 })).toHaveLength(5000)
    expect(watches.list({ session: 7n })).toEqual(['0x7/crowded', '0x7/own/7'])
    expect(() => watches.page({ kind: 'child' })).toThrow('All connections')
  })

  it('looks at a few watches in a step, of very many connections and of one with very many watches', () => {
    const watches = new Watches()
    for (let i = 0n; i < 3000n; i++) watches.manager.watchData(watches.connect(i), '/a')
    const busy = watches.connect(3000n)
    for (let i = 0; i < 30_000; i++) watches.manager.watchData(busy, `/busy/${i}`)
    expect(watches.list({ limit: 1000 })).toHaveLength(33_000)
    expect(watches.list({ kind: 'exist', limit: 1000 })).toEqual([])
    expect(watches.mostLooked).toBeLessThanOrEqual(50)
  })

  it('ends pages early where paths are long, and goes on behind a path that no request could hold', () => {
    const watches = new Watches()
    const channel = watches.connect(1n)
    const paths = Array.from({ length: 30 }, (_, i) => `/${'x'.repeat(100_000 + i)}`)
    for (const path of paths) watches.manager.watchData(channel, path)
    const page = watches.page({ limit: 1000 })
    expect(page.watches).toHaveLength(3)
    expect(page.next!.length).toBeLessThan(1100)
    expect(watches.list({ limit: 1000 }).toSorted()).toEqual(paths.map((path) => `0x1${path}`).toSorted())
  })
})
