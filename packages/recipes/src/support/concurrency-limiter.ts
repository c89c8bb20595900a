/** Waiters that have gone through before their places are given back. */
const COMPACT_AFTER = 1024

/** Lets so many go on at a time, in the order in which they came; each costs the same, however many wait. */
export class ConcurrencyLimiter {
  #free: number
  #queue: ((() => void) | undefined)[] = []
  #next = 0

  constructor(width: number) {
    this.#free = width
  }

  /** Nobody waits, and somebody more could go on. */
  get open(): boolean {
    return this.#free > 0
  }

  /** Waits for its turn, and runs. */
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
    // An array that loses its first one again and again copies all the others each time.
    this.#queue[this.#next++] = undefined
    if (this.#next === this.#queue.length || this.#next === COMPACT_AFTER) {
      this.#queue = this.#queue.slice(this.#next)
      this.#next = 0
    }
    next()
  }
}
