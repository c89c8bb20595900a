import type { Cancel, Clock, HttpRequest, HttpResponse } from '@zabra/runtime'
import { formatSessionId } from '../../../connections/log-context.ts'
import { operationOf } from '../../../core/operations/index.ts'
import type { Session } from '../../../core/sessions/index.ts'
import type { SessionId } from '../../../core/types.ts'
import type { ServerReport } from '../../server-report.ts'
import { presentIn } from '../../sliced-answers.ts'
import { json, problem } from './api-route.ts'

export const DEFAULT_PAGE = 100
export const MAX_PAGE = 1000
/** Pages whose end is kept. */
const MAX_POSITIONS = 16
/** How long they are kept after the last page, in milliseconds: the iterator of a map keeps each table that the map has left since. */
const MAX_IDLE_MS = 60_000

/**
 * Lists sessions in pages. Keeps where the last pages have ended, so that the next page costs its own sessions only: the session with a
 * given id is found by passing all before it.
 */
export class SessionPages {
  /** By server: another role has another one, and the former one is not kept alive. */
  #positions = new WeakMap<ServerReport, Map<SessionId, Iterator<Session>>>()
  #cancelEnd: Cancel = () => {}
  readonly #clock: Pick<Clock, 'after'>

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  /** Returns the answer to a request for a page, made in steps that yield empty strings. */
  *page(server: ServerReport, { query }: HttpRequest): Generator<string, HttpResponse> {
    const limit = Number(query.get('limit') ?? DEFAULT_PAGE)
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
      return problem(
        400,
        'The limit is not understood',
        `Expected limit to be a number from 1 to ${MAX_PAGE}.`,
      )
    const sessions = yield* this.#sessionsAfter(server, query.get('after'))
    if (sessions === undefined)
      return problem(410, 'The session of the cursor has ended', 'Ask for the first page again.')
    const page: object[] = []
    let last: SessionId | undefined
    let one = sessions.next()
    while (one.done !== true && page.length < limit) {
      last = one.value.id
      if (exists(server, last)) page.push(describe(server, one.value))
      one = sessions.next()
      yield ''
    }
    if (one.done === true || last === undefined) return json(200, { sessions: page, next: null })
    this.#keep(server, last, following(one.value, sessions))
    return json(200, { sessions: page, next: formatSessionId(last) })
  }

  /** Returns the sessions after a session, all of them without one; undefined when there is no such session. */
  *#sessionsAfter(
    server: ServerReport,
    after: string | null,
  ): Generator<string, Iterator<Session> | undefined> {
    const sessions = allSessions(server)
    if (after === null) return sessions
    if (!/^0x[\da-f]{1,16}$/i.test(after)) return undefined
    const id = BigInt.asIntN(64, BigInt(after))
    const positions = this.#positions.get(server)
    const kept = positions?.get(id)
    // A position can be used once: a second request for the same page searches again.
    positions?.delete(id)
    if (kept !== undefined) return kept
    for (let one = sessions.next(); one.done !== true; one = sessions.next()) {
      if (one.value.id === id) return sessions
      yield ''
    }
    return undefined
  }

  #keep(server: ServerReport, last: SessionId, sessions: Iterator<Session>): void {
    const positions = this.#positions.get(server) ?? new Map<SessionId, Iterator<Session>>()
    this.#positions.set(server, positions)
    positions.set(last, sessions)
    const [oldest] = positions.keys()
    if (positions.size > MAX_POSITIONS) positions.delete(oldest!)
    this.#cancelEnd()
    this.#cancelEnd = this.#clock.after(MAX_IDLE_MS, 'end of pages of sessions', () => {
      this.#positions = new WeakMap()
    })
  }
}

function* following(first: Session, rest: Iterator<Session>): Generator<Session> {
  yield first
  for (let one = rest.next(); one.done !== true; one = rest.next()) yield one.value
}

function* allSessions({ sessions, localSessions }: ServerReport): Generator<Session> {
  yield* presentIn(sessions)
  if (localSessions !== undefined) yield* presentIn(localSessions)
}

/** Returns whether a session is still there: the next one of a position was there when the page before it was made. */
const exists = ({ sessions, localSessions }: ServerReport, id: SessionId): boolean =>
  (localSessions?.get(id) ?? sessions.get(id)) !== undefined

function describe({ connections, tree }: ServerReport, session: Session): object {
  const connection = connections.ofSession(session.id)
  const operation = connection?.replyWriter.stats.lastOperation
  return {
    id: formatSessionId(session.id),
    timeoutMs: session.timeout,
    local: session.isLocal,
    address: connection === undefined ? null : `${connection.host}:${connection.port}`,
    ephemerals: tree.owners.ofSession(session.id).size,
    watchedPaths: connection?.watchedPaths.size ?? 0,
    lastOperation: operation === undefined ? null : operationOf(operation).name,
  }
}
