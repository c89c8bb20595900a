import type { Clock } from '@zabra/runtime'

/** Milliseconds of one turn of the event loop that all steps take together; a step that has begun takes its own time. */
const MAX_TURN_MS = 2

/** A step of some work. Returns whether more steps follow. Takes a millisecond at most. */
export type WorkStep = () => boolean

/**
 * Runs work of many connections in steps: one step of each in turn, as many as fit into a turn of the event loop. If each connection
 * took its own step in every turn, the length of a turn would grow with their number.
 */
export class SlicedWork {
  readonly #clock: Clock
  /** Runs a function in a later turn. */
  readonly #runLater: (action: () => void) => void
  /** In the order of their next steps. */
  readonly #works = new Set<WorkStep>()
  #isScheduled = false

  constructor(clock: Clock, runLater: (action: () => void) => void) {
    this.#clock = clock
    this.#runLater = runLater
  }

  /** Runs the steps in later turns. */
  add(work: WorkStep): void {
    this.#works.add(work)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#runLater(() => {
      this.#isScheduled = false
      this.#run()
      if (this.#works.size > 0) this.#schedule()
    })
  }

  #run(): void {
    const end = this.#clock.monotonic() + MAX_TURN_MS
    let left = this.#works.size
    for (const work of this.#works) {
      this.#works.delete(work)
      if (work()) this.#works.add(work)
      if (--left === 0 || this.#clock.monotonic() >= end) break
    }
  }
}
