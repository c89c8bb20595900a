/** Number of finished entries before the queue array is compacted. */
const COMPACT_AFTER = 1024

/** Runs at most `width` calls at a time, in order of arrival, at a constant cost per call. */
export class ConcurrencyLimiter {
  #free: number
  #queue: ((() => void) | undefined)[] = []
  #next = 0

  constructor(width: number) {
    this.#free = width
  }

  /** Waits for a free slot and runs the call. */
  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#queue.push(resolve))
    try {
      return await call()
    } finally {
      this.#release()
    }
  }

  #release(): void {
    const next = this.#queue[this.#next]
    if (next === undefined) return void this.#free++
    // Removing the first element of an array would copy all others each time.
    this.#queue[this.#next++] = undefined
    if (this.#next === this.#queue.length || this.#next === COMPACT_AFTER) {
      this.#queue = this.#queue.slice(this.#next)
      this.#next = 0
    }
    next()
  }
}
