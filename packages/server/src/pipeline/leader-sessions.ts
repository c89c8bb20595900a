import { ErrorCode, OpCode } from '@zabra/protocol'
import type { Session } from '../core/sessions/index.ts'
import { SessionMap } from '../core/session-map.ts'
import type { SessionId, Txn } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { PipelineContext, WriteCallback } from './types.ts'

/** A session whose createSession transaction is not applied yet. */
interface CreatingSession {
  owner: object
  isClosing: boolean
}

export interface LeaderSessionsOptions<L extends NotifiedWatcher> extends Pick<
  PipelineContext<L>,
  'sessions' | 'localSessions' | 'clock' | 'onSessionCreated' | 'onSessionClosed'
> {
  readonly serverId: number
}

/** Of the closed sessions, at least so many are remembered, and less than twice as many. */
export const MIN_CLOSED = 32_768

/**
 * Decides on the leader which sessions may write, and through which owner: a learner, or the leader itself. Each owner is identified
 * by an object.
 */
export class LeaderSessions<L extends NotifiedWatcher> {
  readonly #options: LeaderSessionsOptions<L>
  readonly #creating = new SessionMap<CreatingSession>()
  /**
   * Sessions that were closed in this role, and those before them, where local sessions are allowed. A learner may still forward a
   * request, or have one waiting behind a sync, that such a session sent before it moved and was closed; the leader must not take it for a
   * local session of that learner.
   */
  #closed = new SessionMap<true>()
  #closedBefore = new SessionMap<true>()

  constructor(options: LeaderSessionsOptions<L>) {
    this.#options = options
  }

  /** Notes a session whose createSession transaction is prepared. */
  markCreating(id: SessionId, owner: object): void {
    this.#creating.set(id, { owner, isClosing: false })
  }

  /** Notes a session whose closeSession transaction is prepared: no write may follow it. */
  markClosing(id: SessionId): void {
    const session: { isClosing: boolean } | undefined =
      this.#options.sessions.get(id) ?? this.#creating.get(id)
    if (session !== undefined) session.isClosing = true
  }

  /** Forgets the sessions whose createSession transactions were lost. */
  discardCreating(): void {
    this.#creating.clear()
  }

  /** Returns the error number for a session that may not write through `owner`, or 0 (`LeaderSessionTracker.checkSession`). */
  check(id: SessionId, global: boolean, owner: object): number {
    const session = this.#find(id)
    if (session === undefined) return this.#checkUnknown(id, global)
    if (session.isClosing) return ErrorCode.SESSIONEXPIRED
    session.owner ??= owner
    return session.owner === owner ? ErrorCode.OK : ErrorCode.SESSIONMOVED
  }

  /** A session without a createSession transaction can be a local one of its server. It owns no ephemeral nodes. */
  #checkUnknown(id: SessionId, global: boolean): number {
    const { localSessions, serverId } = this.#options
    if (localSessions === undefined || this.#wasClosed(id)) return ErrorCode.SESSIONEXPIRED
    const isOwn = Number(BigInt.asUintN(64, id) >> 56n) === (serverId & 0xff)
    if (!isOwn) return global ? ErrorCode.SESSIONEXPIRED : ErrorCode.OK
    if (!localSessions.isOpen(id)) return ErrorCode.SESSIONEXPIRED
    return global ? ErrorCode.EPHEMERALONLOCALSESSION : ErrorCode.OK
  }

  /** Whether a session is closed or closing. */
  isClosed(id: SessionId): boolean {
    const session = this.#find(id)
    return session === undefined || session.isClosing
  }

  /** Whether the createSession transaction of a session is not applied yet. */
  isCreating(id: SessionId): boolean {
    return this.#creating.has(id)
  }

  /** Returns whether a session is alive. If so, `owner` owns it from now on. */
  revalidate(id: SessionId, timeout: number, owner: object): boolean {
    const { sessions, clock } = this.#options
    const session = this.#find(id)
    if (session === undefined || session.isClosing) return false
    session.owner = owner
    if ('timeout' in session) sessions.resume(id, timeout, clock.monotonic())
    return true
  }

  /** Reopens a session whose closeSession transaction could not be stored. It is closed once there is space. */
  reopen(id: SessionId): void {
    const session = this.#options.sessions.get(id)
    if (session !== undefined) this.#options.sessions.reopen(session)
  }

  /** Moves the deadline of a session that a learner reports in its answer to a PING. Does nothing for an unknown or closing one. */
  touch(id: SessionId, timeout: number): void {
    const { sessions, clock } = this.#options
    const session = sessions.get(id)
    if (session === undefined || session.isClosing) return
    session.timeout = timeout
    sessions.touch(session, clock.monotonic())
  }

  /** Creates or closes the session of an applied transaction. */
  apply(id: SessionId, txn: Txn, callback: WriteCallback | undefined): void {
    const { sessions, clock, onSessionCreated, onSessionClosed } = this.#options
    if (txn.type === OpCode.createSession) {
      const session = sessions.add(id, txn.timeOut, clock.monotonic())
      const creating = this.#creating.get(id)
      this.#creating.delete(id)
      session.owner = creating?.owner
      session.isClosing = creating?.isClosing ?? false
      onSessionCreated(session)
    } else if (txn.type === OpCode.closeSession) {
      sessions.remove(id)
      if (this.#options.localSessions !== undefined) this.#rememberClosed(id)
      onSessionClosed(id, callback, txn)
    }
  }

  #find(id: SessionId): Session | CreatingSession | undefined {
    return this.#options.sessions.get(id) ?? this.#creating.get(id)
  }

  #rememberClosed(id: SessionId): void {
    this.#closed.set(id, true)
    if (this.#closed.size < MIN_CLOSED) return
    this.#closedBefore = this.#closed
    this.#closed = new SessionMap()
  }

  #wasClosed(id: SessionId): boolean {
    return this.#closed.has(id) || this.#closedBefore.has(id)
  }
}
