import type { SessionId } from '../types.ts'
import type { Session, SessionRegistry, SessionTable } from './types.ts'

/**
 * The sessions as a learner knows them: the table that transactions made, and who was heard of since the leader was told
 * last. Only the leader ends sessions, so nothing expires here.
 */
export class LearnerSessions implements SessionRegistry {
  readonly #table: SessionTable
  /** Those that have, or had, a client here. */
  readonly #known = new Map<SessionId, Session>()
  #touched: Session[] = []
  /** Sessions of observers behind this server that they have told of since then. */
  readonly #reported = new Map<SessionId, Session>()

  /** The table belongs to the member's data; it changes as transactions are applied. */
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
    const known = this.#known.get(id)
    if (known !== undefined) return known
    const timeout = this.#table.get(id)
    return timeout === undefined ? undefined : untouchedSession(id, timeout)
  }

  isOpen(id: SessionId): boolean {
    const known = this.#known.get(id)
    return known === undefined ? this.#table.has(id) : !known.isClosing
  }

  add(id: SessionId, timeout: number, now: number): Session {
    this.#table.set(id, timeout)
    // Most begin at another server, and their clients stay there.
    return this.#known.has(id) ? this.resume(id, timeout, now) : untouchedSession(id, timeout)
  }

  /** The leader has said that it lives, so it may be that its first transaction is still on its way to this server. */
  resume(id: SessionId, timeout: number, now: number): Session {
    let session = this.#known.get(id)
    if (session === undefined) this.#known.set(id, (session = untouchedSession(id, timeout)))
    session.timeout = timeout
    this.touch(session, now)
    return session
  }

  detach(id: SessionId): void {
    this.#known.delete(id)
  }

  remove(id: SessionId): void {
    this.#table.delete(id)
    const session = this.#known.get(id)
    if (session === undefined) return
    session.isClosing = true
    this.#known.delete(id)
  }

  touch(session: Session, now: number): void {
    session.deadline = now + session.timeout
    if (session.isTouched) return
    session.isTouched = true
    this.#touched.push(session)
  }

  /** An observer behind this server has heard of a session. */
  touchFromObserver(id: SessionId, timeout: number): void {
    this.#reported.set(id, untouchedSession(id, timeout))
  }

  /** What the answer to a PING of the leader says: the sessions that were touched since the last one. */
  takeTouched(): readonly Session[] {
    const touched = this.#touched
    this.#touched = []
    for (const session of touched) {
      session.isTouched = false
      this.#reported.delete(session.id)
    }
    touched.push(...this.#reported.values())
    this.#reported.clear()
    return touched.filter(({ isClosing: closing }) => !closing)
  }

  expire(): Session[] {
    return []
  }

  reopen(session: Session): void {
    session.isClosing = false
  }

  /** Every session of the table. */
  *[Symbol.iterator](): IterableIterator<Session> {
    for (const [id, timeout] of this.#table) yield this.#known.get(id) ?? untouchedSession(id, timeout)
  }
}

const untouchedSession = (id: SessionId, timeout: number): Session => ({
  id,
  timeout,
  deadline: 0,
  isClosing: false,
  bucket: 0,
  isLocal: false,
  owner: undefined,
  isTouched: false,
})
