/** Waiters that have gone through before their places are given back. */
const SPENT = 1024

/** Lets so many go on at a time, in the order in which they came; each costs the same, however many wait. */
export class Gate {
  #free: number
  #waiting: ((() => void) | undefined)[] = []
  #next = 0

  constructor(width: number) {
    this.#free = width
  }

  /** Nobody waits, and somebody more could go on. */
  get open(): boolean {
    return this.#free > 0
  }

  /** Waits for its turn, and runs. */
  async through<T>(call: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await call()
    } finally {
      this.#leave()
    }
  }

  #leave(): void {
    const next = this.#waiting[this.#next]
    if (next === undefined) return void this.#free++
    // An array that loses its first one again and again copies all the others each time.
    this.#waiting[this.#next++] = undefined
    if (this.#next === this.#waiting.length || this.#next === SPENT) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    next()
  }
}
