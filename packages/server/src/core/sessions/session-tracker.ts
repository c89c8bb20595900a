import { LinkedList } from '../linked-list.ts'
import { SessionMap } from '../session-map.ts'
import type { SessionId } from '../types.ts'
import { newSession, NO_BUCKET } from './session.ts'
import type { Session, SessionRegistry, SessionTable } from './types.ts'

export interface SessionTrackerOptions {
  readonly isLocal?: boolean
  readonly table?: SessionTable
}

/** Sessions that are checked in one call of `expire`; nearly all of a bucket were touched meanwhile and move to another one. */
export const CHECKED_AT_ONCE = 500

/**
 * Tracks the deadlines of sessions and expires them (`SessionTrackerImpl`, client-protocol 2.3). Deadlines are rounded up to ticks.
 * A session is checked only at the tick of its bucket: if it was touched meanwhile, it moves to a later bucket.
 */
export class SessionTracker implements SessionRegistry {
  readonly #sessions = new SessionMap<Session>()
  readonly #buckets = new Map<number, LinkedList<Session>>()
  readonly #tick: number
  readonly #local: boolean
  readonly #table: SessionTable | undefined
  /** The sessions of the table that may have no deadline yet, since when the tracker exists; undefined when all have one. */
  #untracked: Iterator<SessionId> | undefined
  readonly #startedAt: number
  #nextBucket: number

  /**
   * `tick` is in milliseconds, `now` on the monotonic clock. The sessions of `table` get a new deadline, since their old ones are
   * unknown here: some now and the others in `expire`, since there may be very many. The tracker keeps the table up to date. `isLocal`
   * makes the sessions local ones.
   */
  constructor(tick: number, now: number, { isLocal: local = false, table }: SessionTrackerOptions = {}) {
    this.#tick = tick
    this.#local = local
    this.#nextBucket = this.#bucketOf(now)
    this.#table = table
    this.#startedAt = now
    this.#untracked = table?.keys()
    this.#track()
  }

  get size(): number {
    return this.#untracked === undefined ? this.#sessions.size : this.#table!.size
  }

  add(id: SessionId, timeout: number, now: number): Session {
    this.#table?.set(id, timeout)
    return this.resume(id, timeout, now)
  }

  /** As `add`, for the session of a client that reconnects: the table keeps the timeout of its transaction. */
  resume(id: SessionId, timeout: number, now: number): Session {
    const session = this.get(id)
    if (session === undefined) return this.#create(id, timeout, now)
    session.timeout = timeout
    this.touch(session, now)
    return session
  }

  #create(id: SessionId, timeout: number, now: number): Session {
    const session = newSession(id, timeout, now + timeout, this.#local)
    this.#sessions.set(id, session)
    this.#place(session)
    return session
  }

  get(id: SessionId): Session | undefined {
    const session = this.#sessions.get(id)
    if (session !== undefined || this.#untracked === undefined) return session
    const timeout = this.#table!.get(id)
    return timeout === undefined ? undefined : this.#create(id, timeout, this.#startedAt)
  }

  isOpen(id: SessionId): boolean {
    const session = this.get(id)
    return session !== undefined && !session.isClosing
  }

  touch(session: Session, now: number): void {
    const deadline = now + session.timeout
    session.deadline = deadline
    // A shorter timeout can move the deadline before the bucket, which must not be missed.
    if (deadline < (session.bucket - 1) * this.#tick) this.#move(session)
  }

  /** Does nothing: the session lives until its deadline. */
  detach(_id: SessionId): void {}

  remove(id: SessionId): void {
    this.#table?.delete(id)
    const session = this.#sessions.get(id)
    if (session === undefined) return
    this.#sessions.delete(id)
    this.#buckets.get(session.bucket)?.remove(session)
    session.bucket = NO_BUCKET
  }

  expire(now: number): Session[] {
    const expired: Session[] = []
    if (!this.#track()) return expired
    let left = CHECKED_AT_ONCE
    for (; this.#nextBucket * this.#tick <= now; this.#nextBucket++) {
      const due = this.#buckets.get(this.#nextBucket)
      for (let session = due?.first; session !== undefined; session = due!.first) {
        if (left-- === 0) return expired
        due!.remove(session)
        session.bucket = NO_BUCKET
        if (this.#bucketOf(session.deadline) > this.#nextBucket) this.#place(session)
        else if (!session.isClosing) {
          session.isClosing = true
          expired.push(session)
        }
      }
      this.#buckets.delete(this.#nextBucket)
    }
    return expired
  }

  /** Reopens a session, which is checked again at its deadline. */
  reopen(session: Session): void {
    session.isClosing = false
    this.#move(session)
  }

  get nextDeadline(): number {
    return this.#untracked === undefined ? this.#nextBucket * this.#tick : this.#startedAt
  }

  *[Symbol.iterator](): IterableIterator<Session> {
    if (this.#untracked === undefined) yield* this.#sessions.values()
    else
      for (const id of this.#table!.keys()) {
        const session = this.get(id)
        if (session !== undefined) yield session
      }
  }

  /** Gives some sessions of the table a deadline. Returns whether all have one. */
  #track(): boolean {
    for (let left = CHECKED_AT_ONCE; this.#untracked !== undefined; left--) {
      if (left === 0) return false
      const { done, value: id } = this.#untracked.next()
      if (done === true) this.#untracked = undefined
      else this.get(id)
    }
    return true
  }

  #bucketOf(deadline: number): number {
    return tickAfter(deadline, this.#tick)
  }

  #move(session: Session): void {
    this.#buckets.get(session.bucket)?.remove(session)
    this.#place(session)
  }

  #place(session: Session): void {
    const number = Math.max(this.#bucketOf(session.deadline), this.#nextBucket)
    let bucket = this.#buckets.get(number)
    if (bucket === undefined) this.#buckets.set(number, (bucket = new LinkedList()))
    session.bucket = number
    bucket.add(session)
  }
}

/** Returns the number of the first tick after a deadline, for ticks of `tick` milliseconds. */
export const tickAfter = (deadline: number, tick: number): number => Math.floor(deadline / tick) + 1

/** Returns the timeout for a requested one, in milliseconds. */
export const negotiateTimeout = (requested: number, min: number, max: number): number =>
  Math.max(min, Math.min(max, requested))
