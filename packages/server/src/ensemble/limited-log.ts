import { addressBlockOf, type Clock, type Connection, type Logger } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { Membership } from './membership.ts'

/** The shortest time between two lines about the same thing, in milliseconds. */
const INTERVAL_MS = 10_000
/** The most things whose last line is remembered; further ones share a line. */
const MAX_KEYS = 256
const OTHER_THINGS = 'other things'

/** A server, as it claims to be, and its connection. */
interface Peer {
  readonly serverId: ServerId
  readonly accepted: Pick<Connection, 'remote'>
}

/** Returns the key of lines about a server: its id, or its address where no configuration names it, since a program may claim many ids. */
export const keyOfPeer = (
  message: string,
  { membership }: { readonly membership: Pick<Membership, 'member'> },
  { serverId, accepted }: Peer,
): string =>
  `${message} ${membership.member(serverId) === undefined ? addressBlockOf(accepted.remote.host) : serverId}`

/** The lines about a thing in an interval, and the number of those left out. */
interface LastLines {
  readonly since: number
  logged: number
  left: number
}

/** Logs lines that another server can cause: at most `burst` in 10 s about each thing, with the number of `others` that were left out. */
export class LimitedLog {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #logger: Logger
  readonly #burst: number
  readonly #last = new Map<string, LastLines>()

  /** `burst` is the number of lines about one thing in 10 s. */
  constructor(clock: Pick<Clock, 'monotonic'>, logger: Logger, burst = 1) {
    this.#clock = clock
    this.#logger = logger
    this.#burst = burst
  }

  /** Logs a line about the thing `key`, unless `burst` lines about it were logged in the last 10 s. */
  log(level: 'info' | 'warn', key: string, context: object, message: string): void {
    const now = this.#clock.monotonic()
    if (!this.#last.has(key) && !this.#hasRoom(now)) key = OTHER_THINGS
    const last = this.#last.get(key)
    const isRecent = last !== undefined && now - last.since < INTERVAL_MS
    if (isRecent && last.logged === this.#burst) {
      last.left++
      return
    }
    const others = last === undefined || last.left === 0 ? {} : { others: last.left }
    if (isRecent) last.logged++
    else {
      this.#last.delete(key)
      this.#last.set(key, { since: now, logged: 1, left: 0 })
    }
    this.#logger[level]({ ...context, ...others }, message)
  }

  /** Returns whether one more thing can be remembered. Forgets the one with the oldest line if another line of it may be logged. */
  #hasRoom(now: number): boolean {
    if (this.#last.size < MAX_KEYS) return true
    const [oldest, { since }] = this.#last.entries().next().value!
    if (now - since < INTERVAL_MS) return false
    return this.#last.delete(oldest)
  }
}
