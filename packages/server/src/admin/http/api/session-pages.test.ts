import { ManualClock, type HttpRequest, type HttpResponse } from '@zabra/runtime'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../../../core/session-map.ts'
import { formatSessionId } from '../../../connections/log-context.ts'
import { LearnerSessions, type Session, type SessionRegistry } from '../../../core/sessions/index.ts'
import type { ServerReport } from '../../server-report.ts'
import { SessionPages } from './session-pages.ts'

const COUNT = 100_000

/** A server with many sessions that counts how many of them are looked at. */
class ManySessions {
  passed = 0
  readonly table = new SessionMap(Array.from({ length: COUNT }, (_, i) => [BigInt(i + 1), 4000]))
  /** In the order in which the table has them. */
  readonly ids = [...this.table.keys()]
  readonly server: ServerReport
  readonly pages: SessionPages

  constructor(pages = new SessionPages(new ManualClock())) {
    this.pages = pages
    const all = new LearnerSessions(this.table)
    const registry = new Proxy<SessionRegistry>(all, {
      get: (_, key) => {
        if (key === Symbol.iterator) return () => this.#counted(all)
        const value = (all as unknown as Record<string | symbol, unknown>)[key]
        return typeof value === 'function' ? (value.bind(all) as unknown) : value
      },
    })
    this.server = {
      sessions: registry,
      localSessions: undefined,
      connections: { ofSession: () => undefined },
      tree: { owners: { ofSession: () => new Set() } },
    } as unknown as ServerReport
  }

  *#counted(all: Iterable<Session>): Generator<Session> {
    for (const one of all) {
      this.passed++
      yield one
    }
  }

  /** Returns the ids of a page, its end, and how many sessions and steps it took. */
  page(query: string) {
    this.passed = 0
    const steps = this.pages.page(this.server, { query: new URLSearchParams(query) } as HttpRequest)
    let count = 0
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) count++
    const { status, body } = step.value as HttpResponse
    const { sessions = [], next } = JSON.parse(body as string) as {
      sessions?: { id: string }[]
      next?: string
    }
    return { status, ids: sessions.map(({ id }) => BigInt(id)), next, passed: this.passed, steps: count }
  }
}

describe('the pages of a hundred thousand sessions', () => {
  it('cost their own sessions each, and have each session once', () => {
    const many = new ManySessions()
    let after = ''
    for (let page = 0; page < COUNT / 1000; page++) {
      const { ids, next, passed } = many.page(`limit=1000${after}`)
      expect(ids).toEqual(many.ids.slice(page * 1000, page * 1000 + 1000))
      expect(passed).toBeLessThanOrEqual(1001)
      after = `&after=${String(next)}`
    }
    expect(after).toBe('&after=null')
  })

  it('are found again in steps when they are asked for twice, and go on when the last session of a page has ended', () => {
    const many = new ManySessions()
    const { next } = many.page('limit=1000')
    many.table.delete(many.ids[999]!)
    many.table.delete(many.ids[1000]!)
    expect(many.page(`limit=3&after=${String(next)}`)).toMatchObject({
      ids: many.ids.slice(1001, 1004),
      passed: 4,
    })
    const again = many.page(`limit=2&after=${formatSessionId(many.ids[59_999]!)}`)
    expect(again).toMatchObject({ ids: many.ids.slice(60_000, 60_002) })
    expect(again.steps).toBeGreaterThan(59_000)
    expect(many.page(`limit=3&after=${String(next)}`).status).toBe(410)
    expect(many.page('after=1000').status).toBe(410)
  })

  it('are found again in steps after a minute, since an iterator keeps all tables that its map has left', () => {
    const clock = new ManualClock()
    const many = new ManySessions(new SessionPages(clock))
    const { next } = many.page('limit=10')
    clock.advance(59_999)
    const inTime = many.page(`limit=10&after=${String(next)}`)
    expect(inTime).toMatchObject({ ids: many.ids.slice(10, 20), passed: 10 })
    clock.advance(60_000)
    expect(many.page(`limit=10&after=${String(inTime.next)}`)).toMatchObject({
      ids: many.ids.slice(20, 30),
      passed: 31,
    })
  })

  it('keep nothing of a role that has ended', async () => {
    const pages = new SessionPages(new ManualClock())
    const listFirstPage = (): WeakRef<object> => {
      const many = new ManySessions(pages)
      expect(many.page('limit=1').next).toBe(formatSessionId(many.ids[0]!))
      return new WeakRef(many.server)
    }
    const former = listFirstPage()
    // A WeakRef keeps its target alive until the end of the turn that made it.
    await new Promise((resolve) => setImmediate(resolve))
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    collect()
    expect(former.deref()).toBeUndefined()
    const other = new ManySessions(pages)
    expect(other.page('limit=1').next).toBe(formatSessionId(other.ids[0]!))
  })
})
