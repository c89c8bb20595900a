import type { Platform } from '@zabra/client/core'

/** How long a measurement is good for, against clocks that drift. */
const MEASUREMENT_LIFETIME_MS = 300_000

/**
 * The clock of the servers as seen from here: what they stamp on a znode, compared with the time halfway between request
 * and reply. Wrong by half of that time at most.
 */
export class ServerClock {
  readonly #clock: Pick<Platform['clock'], 'monotonic'>
  #offset: number | undefined
  #error = Infinity
  #measuredAt = 0

  constructor(clock: Pick<Platform['clock'], 'monotonic'>) {
    this.#clock = clock
  }

  /** Milliseconds since 1970, or undefined while nothing has been measured. */
  now(): number | undefined {
    return this.#offset === undefined ? undefined : this.#clock.monotonic() + this.#offset
  }

  /** A znode whose making was asked for at `sentAt` got the stamp `ctime`. */
  observe(ctime: number, sentAt: number): void {
    const now = this.#clock.monotonic()
    const error = (now - sentAt) / 2
    if (error > this.#error && now - this.#measuredAt < MEASUREMENT_LIFETIME_MS) return
    this.#offset = ctime - (sentAt + error)
    this.#error = error
    this.#measuredAt = now
  }

  /** Runs what makes a znode, and learns from its stamp. */
  async measure<T extends { readonly stat: { readonly ctime: number } }>(make: () => Promise<T>): Promise<T> {
    const sentAt = this.#clock.monotonic()
    const made = await make()
    this.observe(made.stat.ctime, sentAt)
    return made
  }
}
