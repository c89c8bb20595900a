import { ErrorCode, OpCode } from '@zabra/protocol'
import type { Session } from '../../core/sessions/index.ts'
import type { SessionId, Txn } from '../../core/types.ts'
import type { Listener } from '../../core/watches/index.ts'
import type { Requester, WritesKit } from './contract.ts'

/** A session whose first transaction is on its way. */
interface Arriving {
  owner: object
  closing: boolean
}

export interface LeaderSessionsParts<L extends Listener> extends Pick<
  WritesKit<L>,
  'sessions' | 'locals' | 'clock' | 'sessionBegun' | 'sessionEnded'
> {
  readonly serverId: number
  readonly hasQuorum: boolean
}

/** Most sessions that are remembered after their end. */
const MAX_OVER = 65_536

/** Which sessions may write, and through whom, where this server decides. */
export class LeaderSessions<L extends Listener> {
  readonly #parts: LeaderSessionsParts<L>
  readonly #arriving = new Map<SessionId, Arriving>()
  /**
   * Sessions that have ended in this term, the newest last, where sessions may write that no transaction has begun: a learner
   * may still forward, or have waiting behind a sync, what one of these had sent before it went elsewhere and ended.
   */
  readonly #over = new Set<SessionId>()

  constructor(parts: LeaderSessionsParts<L>) {
    this.#parts = parts
  }

  /** The first transaction of a session is on its way. */
  arrives(id: SessionId, owner: object): void {
    this.#arriving.set(id, { owner, closing: false })
  }

  /** The last transaction of a session is to come: nothing comes behind it. */
  closes(id: SessionId): void {
    const session: { closing: boolean } | undefined = this.#parts.sessions.get(id) ?? this.#arriving.get(id)
    if (session !== undefined) session.closing = true
  }

  /** What was on its way is lost. */
  lose(): void {
    this.#arriving.clear()
  }

  /** Why a session may not write, as an error number; 0 when it may (`LeaderSessionTracker.checkSession`). */
  check(id: SessionId, global: boolean, asking: object): number {
    const { sessions, hasQuorum } = this.#parts
    const session = sessions.get(id)
    if (session !== undefined && !hasQuorum && !session.closing) return ErrorCode.OK
    const known: Session | Arriving | undefined = session ?? this.#arriving.get(id)
    if (known === undefined) return this.#checkUnknown(id, global)
    if (known.closing) return ErrorCode.SESSIONEXPIRED
    known.owner ??= asking
    return known.owner === asking ? ErrorCode.OK : ErrorCode.SESSIONMOVED
  }

  /** A session that no transaction has begun can be one that only its own server knows. It has no ephemeral nodes. */
  #checkUnknown(id: SessionId, global: boolean): number {
    const { locals, serverId } = this.#parts
    if (locals === undefined || this.#over.has(id)) return ErrorCode.SESSIONEXPIRED
    const isOwn = Number(BigInt.asUintN(64, id) >> 56n) === (serverId & 0xff)
    if (!isOwn) return global ? ErrorCode.SESSIONEXPIRED : ErrorCode.OK
    if (!locals.isOpen(id)) return ErrorCode.SESSIONEXPIRED
    return global ? ErrorCode.EPHEMERALONLOCALSESSION : ErrorCode.OK
  }

  /** Whether a session has ended, or is about to. */
  isOver(id: SessionId): boolean {
    const known: Session | Arriving | undefined = this.#parts.sessions.get(id) ?? this.#arriving.get(id)
    return known === undefined || known.closing
  }

  /** Whether a session lives; if so its requests come through this owner from now on. */
  mayGoOn(id: SessionId, timeout: number, owner: object): boolean {
    const { sessions, clock } = this.#parts
    const session: Session | Arriving | undefined = sessions.get(id) ?? this.#arriving.get(id)
    if (session === undefined || session.closing) return false
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
    if (session === undefined || session.closing) return
    session.timeout = timeout
    sessions.touch(session, clock.monotonic())
  }

  /** A transaction is applied. */
  applied(id: SessionId, txn: Txn, requester: Requester | undefined): void {
    const { sessions, clock, sessionBegun, sessionEnded } = this.#parts
    if (txn.type === OpCode.createSession) {
      const session = sessions.add(id, txn.timeOut, clock.monotonic())
      const arriving = this.#arriving.get(id)
      this.#arriving.delete(id)
      session.owner = arriving?.owner
      session.closing = arriving?.closing ?? false
      sessionBegun(session)
    } else if (txn.type === OpCode.closeSession) {
      sessions.remove(id)
      if (this.#parts.locals !== undefined) this.#remember(id)
      sessionEnded(id, requester)
    }
  }

  #remember(id: SessionId): void {
    this.#over.add(id)
    if (this.#over.size <= MAX_OVER) return
    for (const oldest of this.#over) {
      this.#over.delete(oldest)
      return
    }
  }
}
