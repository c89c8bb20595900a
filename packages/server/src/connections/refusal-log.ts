import { addressBlockOf, type Clock, type Logger } from '@zabra/runtime'
import { kindOf } from '../core/kind-of.ts'

/** Milliseconds in which one line is logged for a kind and an address. */
const WINDOW_MS = 10_000
/** Pairs of kind and address that are counted apart; further ones count as one address. */
const MAX_ENTRIES = 1000
const OTHER_ADDRESSES = 'other addresses'

interface Entry {
  /** Lines that may still be logged in this window. */
  left: number
  /** What was not logged since the last line. */
  omitted: number
  context: object
}

/** Logs what clients cause again and again: at most one line, or some, for each kind and address, or network of IPv6, in ten seconds. */
export class RefusalLog {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #entries = new Map<string, Entry>()

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock
    this.#logger = logger
  }

  /**
   * Logs a reason, or counts it for the next line. Reasons that differ by numbers, addresses or quoted texts are of one kind, unless
   * `kind` tells them apart. `burst` is the number of lines in ten seconds.
   */
  note(host: string, fields: object, reason: string, kind = reason, burst = 1): void {
    // The event of reasons that are none of their own.
    const context = { id: 'client.closed', ...fields }
    const block = addressBlockOf(host)
    const isFull = this.#entries.size >= MAX_ENTRIES
    const key = (address: string): string => `${address} ${kindOf(kind)}`
    const known =
      this.#entries.get(key(block)) ?? (isFull ? this.#entries.get(key(OTHER_ADDRESSES)) : undefined)
    if (known !== undefined && known.left > 0) {
      known.left--
      return this.#logger.info(context, reason)
    }
    if (known !== undefined) {
      known.omitted++
      known.context = context
      return
    }
    this.#logger.info(context, reason)
    this.#open(key(isFull ? OTHER_ADDRESSES : block), { left: burst - 1, omitted: 0, context }, reason)
  }

  #open(key: string, entry: Entry, reason: string): void {
    this.#entries.set(key, entry)
    this.#clock.after(WINDOW_MS, 'refusals that were not logged', () => {
      this.#entries.delete(key)
      if (entry.omitted === 0) return
      this.#logger.info({ ...entry.context, times: entry.omitted }, reason)
      this.#open(key, { left: 0, omitted: 0, context: entry.context }, reason)
    })
  }
}
