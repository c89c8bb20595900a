import type { SessionId } from '../types.ts'
import type { Session, SessionRegistry, SessionTable } from './types.ts'

export interface SessionTrackerOptions {
  readonly isLocal?: boolean
  readonly table?: SessionTable
}

/**
 * Which sessions live and until when (`SessionTrackerImpl`). Time goes in ticks; a session stands in the bucket of some
 * tick, and only when that tick comes is it looked at: if it was touched meanwhile it moves on to a later bucket.
 */
export class SessionTracker implements SessionRegistry {
  readonly #sessions = new Map<SessionId, Session>()
  readonly #buckets = new Map<number, Set<Session>>()
  readonly #tick: number
  readonly #local: boolean
  readonly #table: SessionTable | undefined
  #nextBucket: number

  /**
   * `tick` in milliseconds; `now` on the monotonic clock. The sessions of a `table` begin with a full life: whoever decided
   * about them until now is not heard of any more. The table is kept up to date. `local` ones are those of this server alone.
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

  /** Adds a session, or gives one that is known a new timeout and a full life. */
  add(id: SessionId, timeout: number, now: number): Session {
    this.#table?.set(id, timeout)
    return this.resume(id, timeout, now)
  }

  /** The same, for a session that its client brings along: its transaction said another timeout, which stays in the table. */
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

  /** The session is alive now, and for its timeout from now on. */
  touch(session: Session, now: number): void {
    const deadline = now + session.timeout
    session.deadline = deadline
    // A shorter timeout can bring the end forward, which lazy moving would miss.
    if (this.#bucketOf(deadline) < session.bucket) this.#move(session)
  }

  /** It goes on until its time is over. */
  detach(_id: SessionId): void {}

  remove(id: SessionId): void {
    this.#table?.delete(id)
    const session = this.#sessions.get(id)
    if (session === undefined) return
    this.#sessions.delete(id)
    this.#buckets.get(session.bucket)?.delete(session)
  }

  /** Sessions whose time is over; each is given once and is closing from then on. */
  expire(now: number): Session[] {
    const over: Session[] = []
    for (; this.#nextBucket * this.#tick <= now; this.#nextBucket++) {
      const due = this.#buckets.get(this.#nextBucket)
      if (due === undefined) continue
      this.#buckets.delete(this.#nextBucket)
      for (const session of due) {
        if (this.#bucketOf(session.deadline) > this.#nextBucket) this.#place(session)
        else if (!session.isClosing) {
          session.isClosing = true
          over.push(session)
        }
      }
    }
    return over
  }

  /** A session that was closing goes on: its end could not be stored. It is looked at again at its deadline. */
  reopen(session: Session): void {
    session.isClosing = false
    this.#move(session)
  }

  /** Every session begins its life anew: the server was down, or had no quorum. */
  renewAll(now: number): void {
    for (const session of this.#sessions.values()) this.touch(session, now)
  }

  /** When `expire` is to be called next, on the monotonic clock. */
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

/** The tick, of so many milliseconds, at which a deadline has passed for certain: its number. */
export const tickAfter = (deadline: number, tick: number): number => Math.floor(deadline / tick) + 1

/** The timeout that a client gets for the one that it asks for, in milliseconds. */
export const negotiateTimeout = (asked: number, min: number, max: number): number =>
  Math.max(min, Math.min(max, asked))
