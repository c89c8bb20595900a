import { RecentMap } from './recent-map.ts'

/** Milliseconds for which a failure counts, from the first one on: then the address has another chance. */
const FAILED_MS = 30_000
/** Most addresses of each kind that are known. */
const MAX_KNOWN = 10_000

/** Ranks of addresses. Where there are not enough places, connections of a higher rank come first. */
export const Rank = { FAILED: -1, UNKNOWN: 0, TRUSTED: 1 } as const

/**
 * Records which addresses have shown a trusted certificate and which have failed a handshake; an address is what `addressBlockOf`
 * returns. In a flood from hundreds of addresses each of them soon has failed, so that clients of other addresses come first.
 */
export class AddressRecords {
  readonly #now: () => number
  /** When a failure counts no more, by address. */
  readonly #failedUntil = new RecentMap<string, number>(MAX_KNOWN)
  /** The addresses of clients with trusted certificates. */
  readonly #trusted = new RecentMap<string, true>(MAX_KNOWN)
  /** Addresses that have shown a long chain which was refused. */
  readonly #suspected = new RecentMap<string, true>(MAX_KNOWN)
  /** Addresses that have completed a handshake. */
  readonly #ready = new RecentMap<string, true>(MAX_KNOWN)

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  rankOf(host: string): number {
    if (this.#trusted.has(host)) return Rank.TRUSTED
    const until = this.#failedUntil.get(host)
    return until !== undefined && this.#now() < until ? Rank.FAILED : Rank.UNKNOWN
  }

  /** Returns whether an address has shown a trusted certificate, and never a long chain that was refused. */
  isTrusted(host: string): boolean {
    return this.#trusted.has(host) && !this.#suspected.has(host)
  }

  /** Returns whether an address has neither completed a handshake nor shown a long chain that was refused. */
  isUnknown(host: string): boolean {
    return !this.#ready.has(host) && !this.#suspected.has(host)
  }

  /** Records that a client has shown a trusted certificate. */
  trust(host: string): void {
    this.#trusted.set(host, true)
  }

  /** Records that a client has shown a long chain that was refused: others may share its address with a trusted one. */
  suspect(host: string): void {
    this.#suspected.set(host, true)
  }

  /** Records that a connection has taken a place, and its handshake was not completed. */
  fail(host: string): void {
    const now = this.#now()
    // A failure while others count would put off the next chance of a client that is far away.
    if (now < (this.#failedUntil.get(host) ?? now)) return
    this.#failedUntil.set(host, now + FAILED_MS)
  }

  /** Records that a client is ready, and forgets the failures of its address. */
  succeed(host: string): void {
    this.#failedUntil.delete(host)
    this.#ready.set(host, true)
  }
}
