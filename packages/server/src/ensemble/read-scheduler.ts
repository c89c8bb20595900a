import type { Clock } from '@zabra/runtime'

/** The clock is looked at after so many messages, or KiB of them. */
const UNITS_PER_CHECK = 8

/** What is held up: `resume` passes on what was held back, and may call `pause` again. */
export interface Paced {
  pause(): void
  resume(): void
}

/**
 * Paces a connection between members by time: what it has sent beyond its share of a turn of the event loop waits for the next one.
 * One turn reads up to 2 MiB of a socket, a hundred thousand of the smallest messages.
 */
export class ReadScheduler {
  readonly #clock: Pick<Clock, 'monotonic' | 'immediate'>
  readonly #turnMs: number
  readonly #paced: Paced
  #isInTurn = false
  #isPaused = false
  #units = 0
  /** When the share of this turn is used up, on the monotonic clock. */
  #end = 0

  /** `turnMs` is the share of the connection, in milliseconds of one turn. */
  constructor(clock: Pick<Clock, 'monotonic' | 'immediate'>, turnMs: number, paced: Paced) {
    this.#clock = clock
    this.#turnMs = turnMs
    this.#paced = paced
  }

  /** Counts a message of so many bytes that has been processed. Pauses the connection when its share of the turn is used up. */
  count(bytes: number): void {
    if (!this.#isInTurn) this.#beginTurn()
    this.#units += 1 + (bytes >> 10)
    if (this.#units < UNITS_PER_CHECK || this.#isPaused) return
    this.#units = 0
    if (this.#clock.monotonic() < this.#end) return
    this.#isPaused = true
    this.#paced.pause()
  }

  #beginTurn(): void {
    this.#isInTurn = true
    this.#units = 0
    this.#end = this.#clock.monotonic() + this.#turnMs
    this.#clock.immediate(() => {
      this.#isInTurn = false
      if (!this.#isPaused) return
      this.#isPaused = false
      this.#paced.resume()
    })
  }
}
