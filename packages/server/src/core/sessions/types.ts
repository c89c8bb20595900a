import type { SessionId } from '../types.ts'

/** What is known of a session. Touching one is a single assignment. */
export interface Session {
  readonly id: SessionId
  /** Negotiated, in milliseconds. */
  timeout: number
  /** On the monotonic clock: when the session ends unless it is touched again. */
  deadline: number
  /** Its last transaction is on its way. */
  isClosing: boolean
  /** The bucket in which the session stands; its deadline may lie beyond. */
  bucket: number
  /** Only this server knows it; there is no transaction of it. One that becomes known to all keeps its object. */
  isLocal: boolean
  /** Through whom its requests must come: the mark of a learner, or of the leader itself; undefined while nobody has asked. */
  owner: unknown
  /** Whether it was touched since the leader was told last. */
  isTouched: boolean
}

/** The sessions of an ensemble with their timeouts in milliseconds, as its transactions made them: what a snapshot holds. */
export type SessionTable = Map<SessionId, number>

/** Which sessions there are, for the client side of a server. Where this server decides it also says when one is over. */
export interface SessionRegistry extends Iterable<Session> {
  readonly size: number
  get(id: SessionId): Session | undefined
  /** Whether the session exists and is not about to end. */
  isOpen(id: SessionId): boolean
  /** The first transaction of a session is applied. One that is known gets the timeout and a full life. */
  add(id: SessionId, timeout: number, now: number): Session
  /** A client has come with its session, which was found alive; the timeout is the one negotiated now. */
  resume(id: SessionId, timeout: number, now: number): Session
  /** The client of a session has left this server; the session goes on. */
  detach(id: SessionId): void
  /** The last transaction of a session is applied. */
  remove(id: SessionId): void
  /** The session is alive now, and for its timeout from now on. */
  touch(session: Session, now: number): void
  /** Sessions whose time is over; each is given once and is closing from then on. None where another server decides. */
  expire(now: number): Session[]
  /** A session that was closing goes on: its end could not be stored. */
  reopen(session: Session): void
  /** When `expire` is to be called next, on the monotonic clock; Infinity where another server decides. */
  readonly nextDeadline: number
}
