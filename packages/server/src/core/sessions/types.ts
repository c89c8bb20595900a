import type { SessionMap } from '../session-map.ts'
import type { SessionId } from '../types.ts'

/** A learner, or the leader itself. */
export interface SessionOwner {
  /** Whether nothing is read of a learner for a while, so that it cannot report its sessions. */
  readonly isHeldUp?: boolean
}

/** The state of a session. Touching one is a single assignment. */
export interface Session {
  readonly id: SessionId
  /** The negotiated timeout, in milliseconds. */
  timeout: number
  /** When the session expires unless it is touched again, on the monotonic clock. */
  deadline: number
  /** Whether its closeSession transaction is in flight. */
  isClosing: boolean
  /** The bucket that holds the session, -1 for none; its deadline may be later. */
  bucket: number
  /** Its neighbours in the bucket. */
  previous: Session | undefined
  next: Session | undefined
  /** Whether only this server knows it and no transaction has created it. A session that becomes global keeps its object. */
  isLocal: boolean
  /** The learner, or the leader, through which its requests must come; undefined before the first request. */
  owner: SessionOwner | undefined
  /**
   * Proves whose session it is, once its client has logged in by SASL here: for a local session this is the only record, that of a
   * global one is a node of the tree, which may not be committed yet.
   */
  userProof: Uint8Array | undefined
  /** Whether it was touched since the last report to the leader. */
  isTouched: boolean
}

/** The global sessions with their timeouts in milliseconds, as transactions created them: the content of a snapshot. */
export type SessionTable = SessionMap<number>

/** Holds the sessions that a server knows. On the leader it also expires them. */
export interface SessionRegistry extends Iterable<Session> {
  readonly size: number
  get(id: SessionId): Session | undefined
  /** Whether the session exists and is not closing. */
  isOpen(id: SessionId): boolean
  /** Adds the session of an applied createSession transaction. A known session gets the timeout and a new deadline. */
  add(id: SessionId, timeout: number, now: number): Session
  /** Resumes the session of a client that has reconnected, with the newly negotiated timeout. */
  resume(id: SessionId, timeout: number, now: number): Session
  /** Called when the client of a session has disconnected; the session lives on. */
  detach(id: SessionId): void
  /** Removes the session of an applied closeSession transaction. */
  remove(id: SessionId): void
  /** Moves the deadline of a session to its timeout from now. */
  touch(session: Session, now: number): void
  /**
   * Returns some of the expired sessions, each once, and marks them as closing: `nextDeadline` is not after `now` while there may be
   * more. Returns none where another server decides.
   */
  expire(now: number): Session[]
  /** Reopens a closing session, whose closeSession transaction could not be stored. */
  reopen(session: Session): void
  /** When to call `expire` next, on the monotonic clock; Infinity where another server decides. */
  readonly nextDeadline: number
}
