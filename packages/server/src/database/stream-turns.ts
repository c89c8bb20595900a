import type { Clock } from '@zabra/runtime'

/** Milliseconds of one turn of the event loop for the chunks of all streams; one that has begun takes its own time. */
const TURN_MS = 2

/** Makes chunks of several streams in later turns of the event loop, in order, as many in a turn as fit into its time. */
export class StreamTurns {
  readonly #clock: Pick<Clock, 'immediate' | 'monotonic'>
  #waiting: (() => void)[] = []
  #isScheduled = false

  constructor(clock: Pick<Clock, 'immediate' | 'monotonic'>) {
    this.#clock = clock
  }

  /** Resolves to what `make` returns in a later turn, or rejects with what it throws. */
  run<T>(make: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          resolve(make())
        } catch (error) {
          reject(error)
        }
      })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#clock.immediate(() => {
      this.#isScheduled = false
      const end = this.#clock.monotonic() + TURN_MS
      const waiting = this.#waiting
      let run = 0
      do waiting[run++]!()
      while (run < waiting.length && this.#clock.monotonic() < end)
      this.#waiting = waiting.slice(run)
      if (this.#waiting.length > 0) this.#schedule()
    })
  }
}
