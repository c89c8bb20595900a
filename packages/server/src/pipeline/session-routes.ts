import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import { SessionMap } from '../core/session-map.ts'
import type { SessionId } from '../core/types.ts'
import type { ForwardedRequest } from '../core/zab/index.ts'

/** The connection by which a session's requests reach a follower: the number of an observer's connection, or `LOCAL_ROUTE`. */
export type SessionRoute = number

/** Stands for all connections of the follower's own clients. Each connection of an observer has another number in a role. */
export const LOCAL_ROUTE: SessionRoute = 0

/** Records that are looked at in one step. */
const RECORDS_PER_STEP = 100

/**
 * Records by which route each session reached a follower last, if observers are connected to the follower. The leader sees the
 * follower as the owner of all these sessions. So the follower itself rejects a request that a session sent by a route that it
 * has left since.
 *
 * A route is recorded when a session is created and when its client revalidates it (REVALIDATE), in the order in which both are
 * forwarded: the leader has received earlier requests of the old route before, and later ones are stale. A closed connection keeps
 * its records, since requests of other connections remain as stale as before. A record is removed with its session.
 */
export class SessionRoutes {
  readonly #isGlobal: (id: SessionId) => boolean
  readonly #routes = new SessionMap<SessionRoute>()

  /** `isGlobal` returns whether a session is global, as far as this server has learned. */
  constructor(isGlobal: (id: SessionId) => boolean) {
    this.#isGlobal = isGlobal
  }

  /** The number of sessions with a recorded route. */
  get size(): number {
    return this.#routes.size
  }

  /** Whether a request may be forwarded. A session without a record is local to its server, or the request creates it. */
  canForward(id: SessionId, type: number, from: SessionRoute): boolean {
    const last = this.#routes.get(id)
    if (last !== undefined) return last === from
    if (type === OpCode.createSession) this.#routes.set(id, from)
    return true
  }

  /**
   * Records the route of a session whose revalidation is forwarded. Returns false, and records nothing, for an unknown session: it
   * may be a local one of another server, which stays there if the leader does not know it either. None of the servers connected to this
   * one has known it as a global session, so none of its requests can be stale meanwhile.
   */
  claim(id: SessionId, from: SessionRoute): boolean {
    if (!this.#routes.has(id) && !this.#isGlobal(id)) return false
    this.#routes.set(id, from)
    return true
  }

  /** Records the route of an unknown session when the leader has confirmed that it is alive. */
  confirm(id: SessionId, from: SessionRoute): void {
    this.#routes.set(id, from)
  }

  /** Calls `visit` for each session that reached this server by a route last, in steps. */
  *visit(from: SessionRoute, visit: (id: SessionId) => void): Generator<void> {
    let looked = 0
    for (const [id, route] of this.#routes) {
      if (route === from) visit(id)
      if (++looked % RECORDS_PER_STEP === 0) yield
    }
  }

  remove(id: SessionId): void {
    this.#routes.delete(id)
  }
}

/**
 * The body of the check that takes the place of a stale request, or of one that creates a session too many. The observer waits for a
 * transaction that answers its request, and the transaction must change nothing: a check of the empty path always fails. A leader of this
 * project takes the version, which is an error number, for the reason, and answers as for any session that has moved; Apache ZooKeeper
 * rejects the path.
 */
export const MOVED_SESSION_CHECK: Uint8Array = (() => {
  const writer = new Writer(8)
  writer.string('')
  writer.int(ErrorCode.SESSIONMOVED)
  return writer.take()
})()

/** Returns such a check in place of a request. */
export const movedSessionCheck = ({
  sessionId,
  xid,
}: Pick<ForwardedRequest, 'sessionId' | 'xid'>): ForwardedRequest => ({
  sessionId,
  xid,
  type: OpCode.check,
  body: MOVED_SESSION_CHECK,
  identities: [],
})

/** Whether a forwarded request is such a check. */
export function isMovedSessionCheck(type: number, body: Uint8Array): boolean {
  if (type !== OpCode.check || body.length !== MOVED_SESSION_CHECK.length) return false
  const reader = new Reader(body)
  return reader.int() === 0 && reader.int() === ErrorCode.SESSIONMOVED
}
