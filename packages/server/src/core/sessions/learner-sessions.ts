import { SessionMap } from '../session-map.ts'
import type { SessionId } from '../types.ts'
import { newSession } from './session.ts'
import type { Session, SessionRegistry, SessionTable } from './types.ts'

/** A session that was touched, with its timeout in milliseconds. */
export type TouchedSession = Pick<Session, 'id' | 'timeout'>

/** A session that an observer has reported. */
type ReportedSession = { -readonly [K in keyof TouchedSession]: TouchedSession[K] }

/**
 * Holds the sessions of a learner: the table that transactions have created, and the sessions that were touched since the last
 * report to the leader. Only the leader expires sessions.
 */
export class LearnerSessions implements SessionRegistry {
  readonly #table: SessionTable
  /** Sessions that have, or had, a client on this server. */
  readonly #connected = new SessionMap<Session>()
  #touched: Session[] = []
  /** Sessions of the table that observers connected to this server have reported since the last report. */
  readonly #reported = new SessionMap<ReportedSession>()
  /** The same in the order of their first reports, and some that were reported or touched here since. */
  #reportQueue: ReportedSession[] = []

  /** `table` belongs to the database of the member; it changes as transactions are applied. */
  constructor(table: SessionTable) {
    this.#table = table
  }

  get size(): number {
    return this.#table.size
  }

  get nextDeadline(): number {
    return Infinity
  }

  get(id: SessionId): Session | undefined {
    const session = this.#connected.get(id)
    if (session !== undefined) return session
    const timeout = this.#table.get(id)
    return timeout === undefined ? undefined : untouchedSession(id, timeout)
  }

  isOpen(id: SessionId): boolean {
    const session = this.#connected.get(id)
    return session === undefined ? this.#table.has(id) : !session.isClosing
  }

  add(id: SessionId, timeout: number, now: number): Session {
    this.#table.set(id, timeout)
    // Most sessions are created on another server, and their clients stay connected to it.
    return this.#connected.has(id) ? this.resume(id, timeout, now) : untouchedSession(id, timeout)
  }

  /** Resumes a session that the leader has revalidated; its createSession transaction may not be applied here yet. */
  resume(id: SessionId, timeout: number, now: number): Session {
    let session = this.#connected.get(id)
    if (session === undefined) this.#connected.set(id, (session = untouchedSession(id, timeout)))
    session.timeout = timeout
    this.touch(session, now)
    return session
  }

  detach(id: SessionId): void {
    this.#connected.delete(id)
  }

  remove(id: SessionId): void {
    this.#table.delete(id)
    const session = this.#connected.get(id)
    if (session === undefined) return
    session.isClosing = true
    this.#connected.delete(id)
  }

  touch(session: Session, now: number): void {
    session.deadline = now + session.timeout
    if (session.isTouched) return
    session.isTouched = true
    this.#touched.push(session)
  }

  /**
   * Notes a session that an observer connected to this server has reported. Ignores an unknown one, as the leader would: an observer may
   * make up any number of them.
   */
  touchFromObserver(id: SessionId, timeout: number): void {
    if (!this.#table.has(id)) return
    const known = this.#reported.get(id)
    if (known !== undefined) {
      known.timeout = timeout
      return
    }
    const reported = { id, timeout }
    this.#reported.set(id, reported)
    this.#reportQueue.push(reported)
  }

  /** The most sessions that `takeTouched` returns. */
  get unreported(): number {
    return this.#touched.length + this.#reportQueue.length
  }

  /**
   * Returns and forgets up to `most` sessions that were touched, the first ones first, for the answer to a PING of the leader. Those that
   * observers have reported are at least half of them if they are so many.
   */
  takeTouched(most = Infinity): readonly TouchedSession[] {
    const touched: TouchedSession[] = []
    const mostOwn = most - Math.min(this.#reported.size, Math.floor(most / 2))
    let taken = 0
    while (taken < this.#touched.length && touched.length < mostOwn) {
      const session = this.#touched[taken++]!
      session.isTouched = false
      this.#reported.delete(session.id)
      if (!session.isClosing) touched.push(session)
    }
    this.#touched = this.#touched.slice(taken)
    for (taken = 0; taken < this.#reportQueue.length && touched.length < most; taken++) {
      const reported = this.#reportQueue[taken]!
      if (this.#reported.get(reported.id) !== reported) continue
      this.#reported.delete(reported.id)
      touched.push(reported)
    }
    this.#reportQueue = this.#reportQueue.slice(taken)
    return touched
  }

  expire(): Session[] {
    return []
  }

  reopen(session: Session): void {
    session.isClosing = false
  }

  /** Yields all sessions of the table. */
  *[Symbol.iterator](): IterableIterator<Session> {
    for (const [id, timeout] of this.#table) yield this.#connected.get(id) ?? untouchedSession(id, timeout)
  }
}

const untouchedSession = (id: SessionId, timeout: number): Session => newSession(id, timeout, 0, false)
