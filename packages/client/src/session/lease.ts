/** What a reply proves about the session. */
export type LeaseEvidence =
  /** A quorum has committed: the leader received a heartbeat for the session after the request was sent. */
  | 'commit'
  /** A server replied that may be partitioned from the leader without knowing it yet. */
  | 'contact'

/** How long a partitioned follower may go on replying: syncLimit × tick plus half a tick, with the default settings. */
const STALE_FOLLOWER_MS = 12_000

/**
 * The time before which a session cannot have expired, on the monotonic clock. The bound is computed when read and
 * needs no timer, so it is correct even right after the process was suspended.
 */
export class Lease {
  #timeout = 0
  #margin: number | undefined
  #horizon = Number.NEGATIVE_INFINITY
  #lastContact = Number.NEGATIVE_INFINITY

  /** `margin` in milliseconds replaces the default margin of a commit: half a tick and clock drift. */
  constructor(margin?: number) {
    this.#margin = margin
  }

  get horizon(): number {
    return this.#horizon
  }

  /** When the newest answered request was sent. */
  get lastContact(): number {
    return this.#lastContact
  }

  /**
   * Records a new connection whose connect request was sent at `sentAt`. The timeout of a session is the one granted
   * last, which may be shorter than before.
   */
  onConnected(timeout: number, sentAt: number): void {
    if (timeout < this.#timeout) {
      this.#timeout = timeout
      this.#horizon = Math.min(this.#horizon, sentAt + timeout - this.#marginOf('commit'))
    }
    this.#timeout = timeout
  }

  reset(): void {
    this.#horizon = Number.NEGATIVE_INFINITY
    this.#lastContact = Number.NEGATIVE_INFINITY
    this.#timeout = 0
  }

  /** Records the reply to a request that was sent at `sentAt` or slightly later. */
  onReply(sentAt: number, evidence: LeaseEvidence): void {
    if (sentAt > this.#lastContact) this.#lastContact = sentAt
    const margin = this.#marginOf(evidence)
    if (margin >= this.#timeout) return
    const horizon = sentAt + this.#timeout - margin
    if (horizon > this.#horizon) this.#horizon = horizon
  }

  #marginOf(evidence: LeaseEvidence): number {
    return evidence === 'commit' ? (this.#margin ?? Math.min(this.#timeout / 4, 2000)) : STALE_FOLLOWER_MS
  }
}
