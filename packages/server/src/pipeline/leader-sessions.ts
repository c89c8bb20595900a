import { ErrorCode, OpCode } from '@zabra/protocol'
import type { Session } from '../core/sessions/index.ts'
import type { SessionId, Txn } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { WriteCallback, PipelineContext } from './types.ts'

/** A session whose first transaction is on its way. */
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

/** Most sessions that are remembered after their end. */
const MAX_OVER = 65_536

/** Which sessions may write, and through whom, where this server decides. */
export class LeaderSessions<L extends NotifiedWatcher> {
  readonly #parts: LeaderSessionsOptions<L>
  readonly #creating = new Map<SessionId, CreatingSession>()
  /**
   * Sessions that have ended in this term, the newest last, where sessions may write that no transaction has begun: a learner
   * may still forward, or have waiting behind a sync, what one of these had sent before it went elsewhere and ended.
   */
  readonly #closed = new Set<SessionId>()

  constructor(parts: LeaderSessionsOptions<L>) {
    this.#parts = parts
  }

  /** The first transaction of a session is on its way. */
  markCreating(id: SessionId, owner: object): void {
    this.#creating.set(id, { owner, isClosing: false })
  }

  /** The last transaction of a session is to come: nothing comes behind it. */
  markClosing(id: SessionId): void {
    const session: { isClosing: boolean } | undefined = this.#parts.sessions.get(id) ?? this.#creating.get(id)
    if (session !== undefined) session.isClosing = true
  }

  /** What was on its way is lost. */
  discardCreating(): void {
    this.#creating.clear()
  }

  /** Why a session may not write, as an error number; 0 when it may (`LeaderSessionTracker.checkSession`). */
  check(id: SessionId, global: boolean, asking: object): number {
    const session = this.#parts.sessions.get(id)
    const known: Session | CreatingSession | undefined = session ?? this.#creating.get(id)
    if (known === undefined) return this.#checkUnknown(id, global)
    if (known.isClosing) return ErrorCode.SESSIONEXPIRED
    known.owner ??= asking
    return known.owner === asking ? ErrorCode.OK : ErrorCode.SESSIONMOVED
  }

  /** A session that no transaction has begun can be one that only its own server knows. It has no ephemeral nodes. */
  #checkUnknown(id: SessionId, global: boolean): number {
    const { localSessions: locals, serverId } = this.#parts
    if (locals === undefined || this.#closed.has(id)) return ErrorCode.SESSIONEXPIRED
    const isOwn = Number(BigInt.asUintN(64, id) >> 56n) === (serverId & 0xff)
    if (!isOwn) return global ? ErrorCode.SESSIONEXPIRED : ErrorCode.OK
    if (!locals.isOpen(id)) return ErrorCode.SESSIONEXPIRED
    return global ? ErrorCode.EPHEMERALONLOCALSESSION : ErrorCode.OK
  }

  /** Whether a session has ended, or is about to. */
  isClosed(id: SessionId): boolean {
    const known: Session | CreatingSession | undefined =
      this.#parts.sessions.get(id) ?? this.#creating.get(id)
    return known === undefined || known.isClosing
  }

  /** Whether a session lives; if so its requests come through this owner from now on. */
  revalidate(id: SessionId, timeout: number, owner: object): boolean {
    const { sessions, clock } = this.#parts
    const session: Session | CreatingSession | undefined = sessions.get(id) ?? this.#creating.get(id)
    if (session === undefined || session.isClosing) return false
    session.owner = owner
    if ('timeout' in session) sessions.resume(id, timeout, clock.monotonic())
    return true
  }

  /** A session that could not be ended stays, and is ended once there is space. */
  reopen(id: SessionId): void {
    const session = this.#parts.sessions.get(id)
    if (session !== undefined) this.#parts.sessions.reopen(session)
  }

  /** A learner has heard of a session (in its answer to a PING). One that is unknown or over is not brought back. */
  touch(id: SessionId, timeout: number): void {
    const { sessions, clock } = this.#parts
    const session = sessions.get(id)
    if (session === undefined || session.isClosing) return
    session.timeout = timeout
    sessions.touch(session, clock.monotonic())
  }

  /** A transaction is applied. */
  apply(id: SessionId, txn: Txn, requester: WriteCallback | undefined): void {
    const { sessions, clock, onSessionCreated: sessionBegun, onSessionClosed: sessionEnded } = this.#parts
    if (txn.type === OpCode.createSession) {
      const session = sessions.add(id, txn.timeOut, clock.monotonic())
      const arriving = this.#creating.get(id)
      this.#creating.delete(id)
      session.owner = arriving?.owner
      session.isClosing = arriving?.isClosing ?? false
      sessionBegun(session)
    } else if (txn.type === OpCode.closeSession) {
      sessions.remove(id)
      if (this.#parts.localSessions !== undefined) this.#remember(id)
      sessionEnded(id, requester)
    }
  }

  #remember(id: SessionId): void {
    this.#closed.add(id)
    if (this.#closed.size <= MAX_OVER) return
    for (const oldest of this.#closed) {
      this.#closed.delete(oldest)
      return
    }
  }
}
