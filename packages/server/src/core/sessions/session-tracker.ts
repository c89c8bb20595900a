import { SessionMap } from '../session-map.ts'
import type { SessionId } from '../types.ts'
import type { Session, SessionRegistry, SessionTable } from './types.ts'

export interface SessionTrackerOptions {
  readonly isLocal?: boolean
  readonly table?: SessionTable
}

/**
 * Tracks the deadlines of sessions and expires them (`SessionTrackerImpl`, client-protocol 2.3). Deadlines are rounded up to ticks.
 * A session is checked only at the tick of its bucket: if it was touched meanwhile, it moves to a later bucket.
 */
export class SessionTracker implements SessionRegistry {
  readonly #sessions = new SessionMap<Session>()
  readonly #buckets = new Map<number, Set<Session>>()
  readonly #tick: number
  readonly #local: boolean
  readonly #table: SessionTable | undefined
  #nextBucket: number

  /**
   * `tick` is in milliseconds, `now` on the monotonic clock. The sessions of `table` get a new deadline, since their old ones are
   * unknown here; the tracker keeps the table up to date. `isLocal` makes the sessions local ones.
   */
  constructor(tick: number, now: number, { isLocal: local = false, table }: SessionTrackerOptions = {}) {
    this.#tick = tick
    this.#local = local
    this.#nextBucket = this.#bucketOf(now)
    this.#table = table
    if (table !== undefined) for (const [id, timeout] of table) this.add(id, timeout, now)
  }

  get size(): number {
    return this.#sessions.size
  }

  add(id: SessionId, timeout: number, now: number): Session {
    this.#table?.set(id, timeout)
    return this.resume(id, timeout, now)
  }

  /** As `add`, for the session of a client that reconnects: the table keeps the timeout of its transaction. */
  resume(id: SessionId, timeout: number, now: number): Session {
    let session = this.#sessions.get(id)
    if (session === undefined) {
      const deadline = now + timeout
      const local = this.#local
      session = {
        id,
        timeout,
        deadline,
        isClosing: false,
        bucket: 0,
        isLocal: local,
        owner: undefined,
        userProof: undefined,
        isTouched: false,
      }
      this.#sessions.set(id, session)
      this.#place(session)
    } else {
      session.timeout = timeout
      this.touch(session, now)
    }
    return session
  }

  get(id: SessionId): Session | undefined {
    return this.#sessions.get(id)
  }

  isOpen(id: SessionId): boolean {
    const session = this.#sessions.get(id)
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
    this.#buckets.get(session.bucket)?.delete(session)
  }

  expire(now: number): Session[] {
    const expired: Session[] = []
    for (; this.#nextBucket * this.#tick <= now; this.#nextBucket++) {
      const due = this.#buckets.get(this.#nextBucket)
      if (due === undefined) continue
      this.#buckets.delete(this.#nextBucket)
      for (const session of due) {
        if (this.#bucketOf(session.deadline) > this.#nextBucket) this.#place(session)
        else if (!session.isClosing) {
          session.isClosing = true
          expired.push(session)
        }
      }
    }
    return expired
  }

  /** Reopens a session, which is checked again at its deadline. */
  reopen(session: Session): void {
    session.isClosing = false
    this.#move(session)
  }

  get nextDeadline(): number {
    return this.#nextBucket * this.#tick
  }

  [Symbol.iterator](): IterableIterator<Session> {
    return this.#sessions.values()
  }

  #bucketOf(deadline: number): number {
    return tickAfter(deadline, this.#tick)
  }

  #move(session: Session): void {
    this.#buckets.get(session.bucket)?.delete(session)
    this.#place(session)
  }

  #place(session: Session): void {
    session.bucket = Math.max(this.#bucketOf(session.deadline), this.#nextBucket)
    let bucket = this.#buckets.get(session.bucket)
    if (bucket === undefined) this.#buckets.set(session.bucket, (bucket = new Set()))
    bucket.add(session)
  }
}

/** Returns the number of the first tick after a deadline, for ticks of `tick` milliseconds. */
export const tickAfter = (deadline: number, tick: number): number => Math.floor(deadline / tick) + 1

/** Returns the timeout for a requested one, in milliseconds. */
export const negotiateTimeout = (requested: number, min: number, max: number): number =>
  Math.max(min, Math.min(max, requested))
