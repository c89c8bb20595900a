import type { Clock } from '@zabra/runtime'

/** The clock is looked at after so many messages, or KiB of them. */
const UNITS_PER_CHECK = 8
/** Bytes of messages in one turn, after which a connection has used up its share: they are also written, to the log and to others. */
const MAX_TURN_BYTES = 512 * 1024

/** What is held up: `resume` passes on what was held back, and may call `pause` again. */
export interface Paced {
  pause(): void
  resume(): void
}

interface Work {
  readonly steps: Iterator<unknown>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Paces a connection between members by time: what it has sent beyond its share of a turn of the event loop waits for the next one.
 * One turn reads up to 2 MiB of a socket, a hundred thousand of the smallest messages.
 */
export class ReadScheduler {
  readonly #clock: Pick<Clock, 'monotonic' | 'immediate'>
  readonly #turnMs: () => number
  readonly #paced: Paced
  #isInTurn = false
  #isPaused = false
  #units = 0
  /** Bytes of messages in this turn. */
  #bytes = 0
  /** When the share of this turn is used up, on the monotonic clock. */
  #end = 0
  /** Work of messages that is not done. The connection is paused until it is. */
  readonly #work: Work[] = []

  /** `turnMs` returns the share of the connection, in milliseconds of one turn. */
  constructor(clock: Pick<Clock, 'monotonic' | 'immediate'>, turnMs: () => number, paced: Paced) {
    this.#clock = clock
    this.#turnMs = turnMs
    this.#paced = paced
  }

  /** Counts a message of so many bytes that has been processed. Pauses the connection when its share of the turn is used up. */
  count(bytes: number): void {
    if (!this.#isInTurn) this.#beginTurn()
    this.#units += 1 + (bytes >> 10)
    this.#bytes += bytes
    if (this.#units < UNITS_PER_CHECK || this.#isPaused) return
    this.#units = 0
    if (this.#bytes >= MAX_TURN_BYTES || this.#clock.monotonic() >= this.#end) this.#pause()
  }

  /**
   * Does the work of a message in steps, in order, as many in a turn as fit into the share. Returns undefined when all is done now; else
   * pauses the connection and returns a promise, which resolves once this work is done. Throws or rejects with what a step throws.
   */
  run(steps: Iterator<unknown>): Promise<void> | undefined {
    if (!this.#isInTurn) this.#beginTurn()
    if (!this.#isPaused) {
      if (this.#proceed(steps)) return undefined
      this.#pause()
    }
    return new Promise((resolve, reject) => this.#work.push({ steps, resolve, reject }))
  }

  /** Drops work that is not done, whose promises stay pending. */
  stop(): void {
    this.#work.length = 0
  }

  /** Does the work that waits, in the share of this turn. Returns whether all is done. */
  #doWork(): boolean {
    for (let work = this.#work[0]; work !== undefined; work = this.#work[0]) {
      try {
        if (!this.#proceed(work.steps)) return false
        work.resolve()
      } catch (error) {
        work.reject(error)
      }
      this.#work.shift()
    }
    return true
  }

  /** Takes steps until the share of this turn is used up. Returns whether all are done. */
  #proceed(steps: Iterator<unknown>): boolean {
    while (steps.next().done !== true) if (this.#clock.monotonic() >= this.#end) return false
    return true
  }

  #pause(): void {
    this.#isPaused = true
    this.#paced.pause()
  }

  #beginTurn(): void {
    this.#isInTurn = true
    this.#units = this.#bytes = 0
    this.#end = this.#clock.monotonic() + this.#turnMs()
    this.#clock.immediate(() => {
      this.#isInTurn = false
      if (!this.#isPaused) return
      if (this.#work.length > 0) this.#beginTurn()
      if (!this.#doWork()) return
      this.#isPaused = false
      this.#paced.resume()
    })
  }
}
