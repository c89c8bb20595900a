import type { Clock, Logger } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { Membership } from './membership.ts'

/** The shortest time between two lines about the same thing, in milliseconds. */
const INTERVAL_MS = 10_000
/** The most things whose last line is remembered. */
const MAX_KEYS = 256

/** Returns the key of lines about a server. Those that no configuration names share one: a program may claim many ids. */
export const keyOfPeer = (
  message: string,
  { membership }: { readonly membership: Pick<Membership, 'member'> },
  peer: ServerId,
): string => (membership.member(peer) === undefined ? message : `${message} ${peer}`)

/** The last line about a thing, and the number of lines left out since. */
interface LastLine {
  at: number
  left: number
}

/** Logs lines that another server can cause: one in 10 s about each thing, with the number of `others` that were left out. */
export class LimitedLog {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #logger: Logger
  readonly #last = new Map<string, LastLine>()

  constructor(clock: Pick<Clock, 'monotonic'>, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  /** Logs a line about the thing `key`, unless there was one a short time ago. */
  log(level: 'info' | 'warn', key: string, context: object, message: string): void {
    const now = this.#clock.monotonic()
    const last = this.#last.get(key)
    if (last !== undefined && now - last.at < INTERVAL_MS) {
      last.left++
      return
    }
    const others = last === undefined || last.left === 0 ? {} : { others: last.left }
    this.#last.delete(key)
    if (this.#last.size >= MAX_KEYS) this.#last.delete(this.#last.keys().next().value!)
    this.#last.set(key, { at: now, left: 0 })
    this.#logger[level]({ ...context, ...others }, message)
  }
}
