import type { Platform } from '@zabra/client/core'

/** How long a measurement is used, because clocks drift. */
const MEASUREMENT_LIFETIME_MS = 300_000

/**
 * Estimates the server clock from the timestamps of znodes and the midpoint between request and reply. The error
 * is at most half of the round trip.
 */
export class ServerClock {
  readonly #clock: Pick<Platform['clock'], 'monotonic'>
  #offset: number | undefined
  #error = Infinity
  #measuredAt = 0

  constructor(clock: Pick<Platform['clock'], 'monotonic'>) {
    this.#clock = clock
  }

  /** Returns milliseconds since 1970, or undefined before the first measurement. */
  now(): number | undefined {
    return this.#offset === undefined ? undefined : this.#clock.monotonic() + this.#offset
  }

  /** Records the `ctime` of a znode whose create was sent at `sentAt`. */
  observe(ctime: number, sentAt: number): void {
    const now = this.#clock.monotonic()
    const error = (now - sentAt) / 2
    if (error > this.#error && now - this.#measuredAt < MEASUREMENT_LIFETIME_MS) return
    this.#offset = ctime - (sentAt + error)
    this.#error = error
    this.#measuredAt = now
  }

  /** Runs a create and records its timestamp. */
  async measure<T extends { readonly stat: { readonly ctime: number } }>(make: () => Promise<T>): Promise<T> {
    const sentAt = this.#clock.monotonic()
    const made = await make()
    this.observe(made.stat.ctime, sentAt)
    return made
  }
}
