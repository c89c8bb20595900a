import type { SessionId } from '../types.ts'
import type { Session, Sessions, SessionTable } from './contract.ts'

/**
 * The sessions as a learner knows them: the table that transactions made, and who was heard of since the leader was told
 * last. Only the leader ends sessions, so nothing expires here.
 */
export class LearnerSessions implements Sessions {
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
    return timeout === undefined ? undefined : unheard(id, timeout)
  }

  isOpen(id: SessionId): boolean {
    const known = this.#known.get(id)
    return known === undefined ? this.#table.has(id) : !known.closing
  }

  add(id: SessionId, timeout: number, now: number): Session {
    this.#table.set(id, timeout)
    // Most begin at another server, and their clients stay there.
    return this.#known.has(id) ? this.resume(id, timeout, now) : unheard(id, timeout)
  }

  /** The leader has said that it lives, so it may be that its first transaction is still on its way to this server. */
  resume(id: SessionId, timeout: number, now: number): Session {
    let session = this.#known.get(id)
    if (session === undefined) this.#known.set(id, (session = unheard(id, timeout)))
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
    session.closing = true
    this.#known.delete(id)
  }

  touch(session: Session, now: number): void {
    session.deadline = now + session.timeout
    if (session.touched) return
    session.touched = true
    this.#touched.push(session)
  }

  /** An observer behind this server has heard of a session. */
  report(id: SessionId, timeout: number): void {
    this.#reported.set(id, unheard(id, timeout))
  }

  /** What the answer to a PING of the leader says: the sessions that were touched since the last one. */
  takeTouched(): readonly Session[] {
    const touched = this.#touched
    this.#touched = []
    for (const session of touched) {
      session.touched = false
      this.#reported.delete(session.id)
    }
    touched.push(...this.#reported.values())
    this.#reported.clear()
    return touched.filter(({ closing }) => !closing)
  }

  expire(): Session[] {
    return []
  }

  reopen(session: Session): void {
    session.closing = false
  }

  /** Every session of the table. */
  *[Symbol.iterator](): IterableIterator<Session> {
    for (const [id, timeout] of this.#table) yield this.#known.get(id) ?? unheard(id, timeout)
  }
}

const unheard = (id: SessionId, timeout: number): Session => ({
  id,
  timeout,
  deadline: 0,
  closing: false,
  bucket: 0,
  local: false,
  owner: undefined,
  touched: false,
})
