/** What `LongHolds` uses of a monitor of the event loop. Times are in nanoseconds. */
export interface HoldMonitor {
  readonly count: number
  readonly max: number
  /** Returns the time that so many percent of all times do not exceed. */
  percentile(percent: number): number
  reset(): void
}

/** Holds of the event loop of more milliseconds are kept one by one, and so many of them. */
const LONG_HOLD_MS = 100
const KEPT_HOLDS = 100
/** The most long holds in the monitor before it is reset: each takes 40 µs in each look. */
const MOST_LONG = 20

/**
 * Finds the single long holds of the event loop in a monitor, by comparing it with the last look. A reset at each look would be simpler, but a
 * monitor leaves out the time in which it is reset, and what looks may itself hold the event loop.
 */
export class LongHolds {
  readonly #monitor: HoldMonitor
  /** Interval of the timer of the monitor, which is part of all of its times. */
  readonly #intervalMs: number
  /** Those in the monitor at the last look, the longest first. */
  #known: readonly number[] = []
  /** The longest time of before the last reset that `reset` did not ask for. */
  #max = 0
  #count = 0
  #last: number[] = []

  constructor(monitor: HoldMonitor, intervalMs: number) {
    this.#monitor = monitor
    this.#intervalMs = intervalMs
  }

  /** The longest time since `reset`, in milliseconds. */
  get max(): number {
    return Math.max(this.#max, this.#milliseconds(this.#monitor.max))
  }

  /** Returns how many were long since the start, and the last of them in milliseconds. */
  take(): { readonly count: number; readonly last: readonly number[] } {
    const long = this.#longest()
    let known = 0
    for (const ms of long)
      if (ms === this.#known[known]) known++
      else {
        this.#count++
        this.#last.push(ms)
      }
    this.#last = this.#last.slice(-KEPT_HOLDS)
    this.#known = long
    if (long.length >= MOST_LONG) {
      this.#max = this.max
      this.#resetMonitor()
    }
    return { count: this.#count, last: this.#last }
  }

  /** Resets `max`, and not what `take` returns. */
  reset(): void {
    this.take()
    this.#max = 0
    this.#resetMonitor()
  }

  #resetMonitor(): void {
    this.#known = []
    this.#monitor.reset()
  }

  /** Returns the long holds in the monitor, the longest first: a percentile by its rank is one value. */
  #longest(): number[] {
    const { count } = this.#monitor
    const long: number[] = []
    for (let rank = 0; rank < Math.min(count, KEPT_HOLDS); rank++) {
      const ms = this.#milliseconds(this.#monitor.percentile((100 * (count - rank)) / count))
      if (ms <= LONG_HOLD_MS) break
      long.push(ms)
    }
    return long
  }

  #milliseconds(ns: number): number {
    return ns / 1e6 - this.#intervalMs
  }
}
