/** What an answer says about the life of a session. */
export type LeaseEvidence =
  /** A quorum has committed: its leader heard from our server after the request was sent. */
  | 'commit'
  /** A server answered that may be cut off from the others without knowing it yet. */
  | 'contact'

/** How long a follower that is cut off may go on answering: syncLimit × tick and half a tick, by the default settings. */
const STALE_FOLLOWER_MS = 12_000

/**
 * Until when a session cannot have expired, on the monotonic clock. It is a bound that is read, not a timer, so it is
 * right even just after the process was stopped for a while.
 */
export class Lease {
  #timeout = 0
  #margin: number | undefined
  #horizon = Number.NEGATIVE_INFINITY
  #lastContact = Number.NEGATIVE_INFINITY

  /** `margin` in milliseconds replaces what is taken off for a commit: half a tick and the slack of clocks. */
  constructor(margin?: number) {
    this.#margin = margin
  }

  get horizon(): number {
    return this.#horizon
  }

  /** When the newest request left that was answered. */
  get lastContact(): number {
    return this.#lastContact
  }

  /**
   * A connection stands that was asked for at `sentAt`. A session lives by the timeout that its newest server grants,
   * which may be shorter than the one before.
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

  /** A request that left at `sentAt` or a little later was answered. */
  onReply(sentAt: number, proof: LeaseEvidence): void {
    if (sentAt > this.#lastContact) this.#lastContact = sentAt
    const margin = this.#marginOf(proof)
    if (margin >= this.#timeout) return
    const horizon = sentAt + this.#timeout - margin
    if (horizon > this.#horizon) this.#horizon = horizon
  }

  #marginOf(proof: LeaseEvidence): number {
    return proof === 'commit' ? (this.#margin ?? Math.min(this.#timeout / 4, 2000)) : STALE_FOLLOWER_MS
  }
}
