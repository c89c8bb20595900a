/** Milliseconds for which a failure counts, from the first one on: then the address has another chance. */
const FAILED_MS = 30_000
/** Most addresses that are known to have failed. */
const MAX_FAILED = 10_000
/** Most addresses that are known to have shown a trusted certificate. */
const MAX_TRUSTED = 10_000
/** Most addresses that are known to have shown a chain of certificates that was refused. */
const MAX_SUSPECTED = 10_000
/** Most addresses that are known to have completed a handshake. */
const MAX_READY = 10_000

/** Ranks of addresses. Where there are not enough places, connections of a higher rank come first. */
export const Rank = { FAILED: -1, UNKNOWN: 0, TRUSTED: 1 } as const

/**
 * Records which addresses have shown a trusted certificate and which have failed a handshake; an address is what `addressBlockOf`
 * returns. In a flood from hundreds of addresses each of them soon has failed, so that clients of other addresses come first.
 */
export class AddressRecords {
  readonly #now: () => number
  /** When a failure counts no more, by address; oldest first. */
  readonly #failedUntil = new Map<string, number>()
  /** The addresses of clients with trusted certificates; the one that was not seen for longest comes first. */
  readonly #trusted = new Set<string>()
  /** Addresses that have shown a long chain which was refused; the one that was not seen for longest comes first. */
  readonly #suspected = new Set<string>()
  /** Addresses that have completed a handshake; the one that was not seen for longest comes first. */
  readonly #ready = new Set<string>()

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
    addLast(this.#trusted, host, MAX_TRUSTED)
  }

  /** Records that a client has shown a long chain that was refused: others may share its address with a trusted one. */
  suspect(host: string): void {
    addLast(this.#suspected, host, MAX_SUSPECTED)
  }

  /** Records that a connection has taken a place, and its handshake was not completed. */
  fail(host: string): void {
    const now = this.#now()
    // A failure while others count would put off the next chance of a client that is far away.
    if (now < (this.#failedUntil.get(host) ?? now)) return
    this.#failedUntil.delete(host)
    this.#failedUntil.set(host, now + FAILED_MS)
    if (this.#failedUntil.size > MAX_FAILED) dropFirst(this.#failedUntil)
  }

  /** Records that a client is ready, and forgets the failures of its address. */
  succeed(host: string): void {
    this.#failedUntil.delete(host)
    addLast(this.#ready, host, MAX_READY)
  }
}

/** Adds a key as the last one, and drops the first one when there are too many. */
function addLast(keys: Set<string>, key: string, most: number): void {
  keys.delete(key)
  keys.add(key)
  if (keys.size > most) dropFirst(keys)
}

function dropFirst(keys: Map<string, unknown> | Set<string>): void {
  const [first] = keys.keys()
  keys.delete(first!)
}
