import { Histogram } from './histogram.ts'

/**
 * Holds counters and histograms in its fields. `reset` sets them to 0, as four-letter commands show them; `total` and the totals of
 * histograms go on, since a counter of Prometheus that falls looks like a restart.
 */
export abstract class Statistics {
  readonly #beforeReset = new Map<string, number>()

  /** Returns a counter since the start. */
  total(counter: string & keyof this): number {
    return Number(this[counter]) + (this.#beforeReset.get(counter) ?? 0)
  }

  reset(): void {
    for (const [name, value] of Object.entries(this) as [string & keyof this, unknown][])
      if (value instanceof Histogram) value.reset()
      else if (typeof value === 'number') {
        this.#beforeReset.set(name, this.total(name))
        Object.assign(this, { [name]: 0 })
      }
  }

  /** Begins a new part of the window over which metrics report percentiles. */
  rotate(): void {
    for (const value of Object.values(this) as unknown[]) if (value instanceof Histogram) value.rotate()
  }
}
