import type { Clock } from '@zabra/runtime'

/** Milliseconds of one iteration of the event loop after which no further turn begins; the one that has begun takes its own time. */
const RUN_MS = 2

export interface LaterTurnsOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'immediate'>
  /** Runs one turn; it calls the action by default. */
  readonly runTurn?: (action: () => void) => void
}

/**
 * Runs turns after the I/O that is ready, in their order. Every kind of work that is cut in parts has its next part here: each has a
 * share of time of its own, and all of them must not come together in one iteration. They are not put off where the sockets took
 * long: writes that are applied later are more that wait, and nine reads to one write took half as much processor time again.
 */
export class LaterTurns {
  readonly #options: LaterTurnsOptions
  #waiting: (() => void)[] = []
  #isScheduled = false

  constructor(options: LaterTurnsOptions) {
    this.#options = options
  }

  /** Runs an action in a later turn. */
  add(action: () => void): void {
    this.#waiting.push(action)
    this.#schedule()
  }

  /** Resolves to what `make` returns in a later turn, or rejects with what it throws. */
  run<T>(make: () => T): Promise<T> {
    return new Promise((resolve, reject) =>
      this.add(() => {
        try {
          resolve(make())
        } catch (error) {
          reject(error)
        }
      }),
    )
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#options.clock.immediate(() => this.#run())
  }

  #run(): void {
    const { clock, runTurn = (action) => action() } = this.#options
    const end = clock.monotonic() + RUN_MS
    const actions = this.#waiting
    this.#waiting = []
    this.#isScheduled = false
    let run = 0
    do runTurn(actions[run++]!)
    while (run < actions.length && clock.monotonic() < end)
    if (run === actions.length) return
    this.#waiting = [...actions.slice(run), ...this.#waiting]
    this.#schedule()
  }
}
