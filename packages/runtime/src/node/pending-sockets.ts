import type { Socket } from 'node:net'
import { addressBlockOf } from '../address-block.ts'
import { NetworkError, type Address } from '../network.ts'
import { AddressRecords } from './address-records.ts'
import { ByAddress } from './by-address.ts'

/** A socket that is not ready. */
interface Pending {
  readonly key: string
  /** Its address, or network of IPv6. */
  readonly host: string
  /** When it was accepted, in milliseconds. */
  readonly since: number
  readonly timer: NodeJS.Timeout
  readonly refuse: (reason: string, code: string) => void
}

export interface PendingSocketLimits {
  /** Most pending sockets; 0 is no limit. */
  readonly limit: number
  readonly timeoutMs: number
  /** Whether a new socket over the limit always replaces another one, also where its own address has most of them. */
  readonly replacesOldest?: boolean
}

/** Milliseconds after which a socket that is silent loses its place to a new one. */
const SILENCE_MS = 1000
/** The oldest sockets of which one of an address that has failed loses its place to a new one. */
const RANKED = 50

/**
 * Limits the number of accepted sockets that are not ready yet, during a handshake for example, and their time. Over the limit the
 * oldest one of the address, or network of IPv6, with most of them is closed, so that a flood from one keeps no other out. Where no address
 * has more than that of a new one, one of an address that has failed is closed for one of another address, and a socket that stays silent
 * for any: a flood from many addresses keeps none out either. Others keep their places: clients that connect at once would replace each
 * other before any of them is ready.
 */
export class PendingSockets {
  readonly #limits: PendingSocketLimits
  readonly #what: string
  readonly #pending = new Map<string, Pending>()
  readonly #byAddress = new ByAddress<Pending>()
  readonly #records: AddressRecords
  /** Oldest first. */
  readonly #silent = new Set<Pending>()

  /** `what` is what the sockets wait for, such as "a TLS handshake". */
  constructor(what: string, limits: PendingSocketLimits, records = new AddressRecords()) {
    this.#what = what
    this.#limits = limits
    this.#records = records
  }

  /** Number of pending sockets. */
  get size(): number {
    return this.#pending.size
  }

  /** Adds a socket. Over the limit, destroys one, calls `refused` of it, and returns false if it is this one. */
  admit(socket: Socket, refused: (error: Error) => void): boolean {
    const { limit, timeoutMs } = this.#limits
    const host = addressBlockOf(socket.remoteAddress ?? '')
    const key = remoteName(socket)
    const remote = remoteOf(socket)
    const refuse = (reason: string, code: string): void => {
      socket.destroy()
      refused(new NetworkError(`${key} is refused: ${reason}`, code, { remote }))
    }
    if (limit > 0 && this.#pending.size >= limit && !this.#makeRoom(host)) {
      socket.on('error', () => {})
      refuse(`${this.#pending.size} others are still at ${this.#what}`, 'ETOOMANY')
      return false
    }
    const timer = setTimeout(() => {
      this.#records.fail(host)
      refuse(`${this.#what} took more than ${timeoutMs} ms`, 'ETIMEDOUT')
    }, timeoutMs)
    timer.unref()
    const pending = { key, host, since: performance.now(), timer, refuse }
    this.#pending.set(key, pending)
    this.#silent.add(pending)
    this.#byAddress.add(host, pending)
    socket.once('close', () => this.#remove(pending))
    return true
  }

  /** Notes that a socket is not silent any more. */
  spoke(socket: Socket): void {
    const pending = this.#pending.get(remoteName(socket))
    if (pending !== undefined) this.#silent.delete(pending)
  }

  /** Removes a socket that is ready. A TLS socket counts as the socket that it wraps. */
  ready(socket: Socket): void {
    const pending = this.#pending.get(remoteName(socket))
    if (pending !== undefined) this.#remove(pending)
  }

  /** Closes a socket in favour of a new one. Returns false, and closes none, if all have as much right to their places. */
  #makeRoom(host: string): boolean {
    const victim = this.#victimOf(host)
    if (victim === undefined) return false
    this.#remove(victim)
    if (this.#byAddress.countOf(victim.host) === 0) this.#records.fail(victim.host)
    victim.refuse(
      `newer connections are at ${this.#what}, and there may be ${this.#limits.limit} of them`,
      'ETOOMANY',
    )
    return true
  }

  #victimOf(host: string): Pending | undefined {
    const group = this.#byAddress.largest()
    const [first] = group
    if (group.size > this.#byAddress.countOf(host) + 1) return first
    const rank = this.#records.rankOf(host)
    const lowest = this.#lowestOfOldest()
    if (lowest !== undefined && lowest.rank < rank) return lowest.pending
    if (this.#limits.replacesOldest === true)
      return group.size > 1 ? first : lowest?.rank === rank ? lowest.pending : undefined
    const [silent] = this.#silent
    return silent !== undefined && performance.now() - silent.since >= SILENCE_MS ? silent : undefined
  }

  /** Returns the socket with the lowest rank of some that are here for longest. */
  #lowestOfOldest(): { readonly pending: Pending; readonly rank: number } | undefined {
    let lowest: { readonly pending: Pending; readonly rank: number } | undefined
    let looked = 0
    for (const pending of this.#pending.values()) {
      const rank = this.#records.rankOf(pending.host)
      if (lowest === undefined || rank < lowest.rank) lowest = { pending, rank }
      if (++looked === RANKED) break
    }
    return lowest
  }

  #remove(pending: Pending): void {
    clearTimeout(pending.timer)
    this.#byAddress.delete(pending.host, pending)
    this.#silent.delete(pending)
    if (this.#pending.get(pending.key) === pending) this.#pending.delete(pending.key)
  }
}

/** The peer of a socket. */
export type Remote = Partial<Pick<Socket, 'remoteAddress' | 'remotePort'>>

/** Returns the address of the peer of a socket, which is unique among open sockets. */
export function remoteName({ remoteAddress = 'unknown', remotePort = 0 }: Remote): string {
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`
}

/** Returns the address of the peer of a socket; undefined when it has left. */
export const remoteOf = ({ remoteAddress: host, remotePort: port }: Remote): Address | undefined =>
  host === undefined || port === undefined ? undefined : { host, port }
