/** Lets a burst through and then so many in a time (`BlueThrottle` without its random early drops). */
export class TokenBucket {
  readonly #size: number
  readonly #fillMs: number
  readonly #fillCount: number
  #tokens: number
  #filledAt = 0

  constructor(size: number, fillMs: number, fillCount: number) {
    this.#size = size
    this.#fillMs = fillMs
    this.#fillCount = fillCount
    this.#tokens = size
  }

  /** Takes a token if there is one. `now` in milliseconds on the monotonic clock. */
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
