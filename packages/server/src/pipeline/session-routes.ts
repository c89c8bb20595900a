import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import type { SessionId } from '../core/types.ts'

/** A way by which sessions come to a follower: the number of a connection of an observer, or `LOCAL_ROUTE`. */
export type SessionRoute = number

/** The connections of the follower's own clients. Those of observers have other numbers, each its own in a term. */
export const LOCAL_ROUTE: SessionRoute = 0

/**
 * By which way each session came last to a follower behind which observers stand. Its leader sees one owner for all of them, so
 * what a session had sent by a way that it has left is kept back here.
 *
 * A note is written when a session is created, or when its client is asked for (REVALIDATE), in the order in which this is
 * passed on: what came by the old way before is in front of it at the leader, and what comes behind it is too late. A link that
 * is closed keeps its notes, since what another link still sends is as old as before. Notes go with their sessions.
 */
export class SessionRoutes {
  readonly #knows: (id: SessionId) => boolean
  readonly #came = new Map<SessionId, SessionRoute>()

  /** `knows` tells whether a session is global, as far as it has been heard here. */
  constructor(knows: (id: SessionId) => boolean) {
    this.#knows = knows
  }

  /** How many notes there are. */
  get size(): number {
    return this.#came.size
  }

  /** Whether a request may be passed on. One without a note is of a session that only its own server knows, or begins it. */
  canForward(id: SessionId, type: number, from: SessionRoute): boolean {
    const last = this.#came.get(id)
    if (last !== undefined) return last === from
    if (type === OpCode.createSession) this.#came.set(id, from)
    return true
  }

  /**
   * The leader is asked whether a session may go on. False when this is not noted before the answer: a session that is not
   * known here may be a local one of another server, which stays where it is when the leader does not know it either. Whoever
   * else stands behind this server has never had it as a global one, so nothing of it is too late meanwhile.
   */
  claim(id: SessionId, from: SessionRoute): boolean {
    if (!this.#came.has(id) && !this.#knows(id)) return false
    this.#came.set(id, from)
    return true
  }

  /** The leader has said that a session that was not known here goes on. */
  confirm(id: SessionId, from: SessionRoute): void {
    this.#came.set(id, from)
  }

  remove(id: SessionId): void {
    this.#came.delete(id)
  }
}

/**
 * What is sent to the leader in the place of a request that came by a way that its session has left. The observer waits for a
 * transaction that answers its request, so there must be one, and it may change nothing: a check of the empty path never holds.
 * Our leader takes this version there for the reason, and refuses as for any session that has moved; Apache ZooKeeper refuses
 * the path.
 */
export const MOVED_SESSION_CHECK: Uint8Array = (() => {
  const writer = new Writer(8)
  writer.string('')
  writer.int(ErrorCode.SESSIONMOVED)
  return writer.take()
})()

/** Whether a learner asks for the refusal of what a session had sent before it moved. */
export function isMovedSessionCheck(type: number, body: Uint8Array): boolean {
  if (type !== OpCode.check || body.length !== MOVED_SESSION_CHECK.length) return false
  const reader = new Reader(body)
  return reader.int() === 0 && reader.int() === ErrorCode.SESSIONMOVED
}
