/** Allows a burst of events and then a fixed number of them per interval, as `BlueThrottle` does without its random early drops. */
export class TokenBucket {
  readonly #size: number
  readonly #fillMs: number
  readonly #fillCount: number
  #tokens: number
  #filledAt = 0

  /** Starts with `size` tokens, which is also the maximum, and adds `fillCount` every `fillMs` milliseconds. */
  constructor(size: number, fillMs: number, fillCount: number) {
    this.#size = size
    this.#fillMs = fillMs
    this.#fillCount = fillCount
    this.#tokens = size
  }

  /** Takes a token. Returns false when there is none. `now` is in milliseconds on the monotonic clock. */
  take(now: number): boolean {
    const fills = Math.floor((now - this.#filledAt) / this.#fillMs)
    if (fills > 0) {
      this.#tokens = Math.min(this.#size, this.#tokens + fills * this.#fillCount)
      this.#filledAt += fills * this.#fillMs
    }
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
