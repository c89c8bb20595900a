import type { Clock } from '@zabra/runtime'

/** Milliseconds of one iteration of the event loop after which no further turn begins; the one that has begun takes its own time. */
const RUN_MS = 2

export interface LaterTurnsOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'immediate'>
  /** Runs one turn. */
  readonly runTurn: (action: () => void) => void
}

/**
 * Runs turns after the I/O that is ready, in their order. Every kind of work that is cut in parts has its next part here: each has a
 * share of time of its own, so that all of them, and the sockets before them, must not come together in one iteration.
 */
export class LaterTurns {
  readonly #options: LaterTurnsOptions
  #waiting: (() => void)[] = []
  /** When the first event of this iteration began, while turns wait; undefined before it. */
  #busySince: number | undefined
  #isPutOff = false

  constructor(options: LaterTurnsOptions) {
    this.#options = options
  }

  /** Notes that a turn begins at `now`, on the monotonic clock. */
  began(now: number): void {
    if (this.#waiting.length > 0) this.#busySince ??= now
  }

  /** Runs an action in a later turn. `since` is when the current turn began. */
  add(action: () => void, since: number): void {
    if (this.#waiting.push(action) > 1) return
    this.#busySince ??= since
    this.#schedule()
  }

  #schedule(): void {
    this.#options.clock.immediate(() => this.#run())
  }

  #run(): void {
    const { clock, runTurn } = this.#options
    const began = clock.monotonic()
    // It is put off once: sockets that always have something to read cannot keep others waiting.
    this.#isPutOff = !this.#isPutOff && began - (this.#busySince ?? began) >= RUN_MS
    this.#busySince = undefined
    if (this.#isPutOff) return this.#schedule()
    const actions = this.#waiting
    this.#waiting = []
    let run = 0
    do runTurn(actions[run++]!)
    while (run < actions.length && clock.monotonic() - began < RUN_MS)
    const isScheduled = this.#waiting.length > 0
    if (run < actions.length) this.#waiting = [...actions.slice(run), ...this.#waiting]
    this.#busySince = undefined
    if (!isScheduled && this.#waiting.length > 0) this.#schedule()
  }
}
