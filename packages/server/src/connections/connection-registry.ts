import { SessionMap } from '../core/session-map.ts'
import type { SessionId } from '../core/types.ts'
import type { ClientChannel } from './client-channel.ts'
import type { RefusalReason } from './stats.ts'

/** File descriptors that are kept free of clients: for logs, snapshots and the platform. */
const RESERVED_DESCRIPTORS = 64

/** Read for each new connection. */
export interface ConnectionLimits {
  /** Connections of one address; 0 is no limit. */
  readonly maxClientCnxns: number
  /** Connections in all; 0 is no limit. */
  readonly maxCnxns: number
}

/** Why a connection is refused, for metrics and for the log. */
export interface Refusal {
  readonly reason: RefusalReason
  readonly text: string
}

/** The open client connections of a server: in the order in which they were accepted, by session, and counted by address. */
export class ConnectionRegistry implements Iterable<ClientChannel> {
  readonly #channels = new Set<ClientChannel>()
  readonly #bySession = new SessionMap<ClientChannel>()
  readonly #countByHost = new Map<string, number>()
  readonly #limits: ConnectionLimits
  /** Connections for which the process may open file descriptors. */
  readonly #descriptors: number
  #onEmpty: () => void = () => {}

  /** `maxDescriptors`: file descriptors that the process may open; -1 where unknown. */
  constructor(limits: ConnectionLimits, maxDescriptors: number) {
    this.#limits = limits
    this.#descriptors = maxDescriptors > 0 ? Math.max(1, maxDescriptors - RESERVED_DESCRIPTORS) : Infinity
  }

  get size(): number {
    return this.#channels.size
  }

  [Symbol.iterator](): IterableIterator<ClientChannel> {
    return this.#channels.values()
  }

  /** Returns why no further connection of an address is accepted, or undefined when it is. */
  refusalOf(host: string): Refusal | undefined {
    const { maxClientCnxns, maxCnxns } = this.#limits
    const count = this.#countByHost.get(host) ?? 0
    if (maxClientCnxns > 0 && count >= maxClientCnxns)
      return {
        reason: 'address',
        text: `its address has ${count} connections already and maxClientCnxns is ${maxClientCnxns}`,
      }
    const max = Math.min(maxCnxns > 0 ? maxCnxns : Infinity, this.#descriptors)
    if (this.size >= max)
      return {
        reason: max < this.#descriptors ? 'total' : 'descriptors',
        text: `there are ${this.size} connections, and maxCnxns and the file descriptors of the process allow ${max}`,
      }
    return undefined
  }

  add(channel: ClientChannel): void {
    this.#channels.add(channel)
    this.#countByHost.set(channel.host, (this.#countByHost.get(channel.host) ?? 0) + 1)
  }

  /** Removes a closed connection. Returns whether it was the connection of its session. */
  remove(channel: ClientChannel): boolean {
    this.#channels.delete(channel)
    const count = (this.#countByHost.get(channel.host) ?? 1) - 1
    if (count === 0) this.#countByHost.delete(channel.host)
    else this.#countByHost.set(channel.host, count)
    if (this.#channels.size === 0) this.#onEmpty()
    return this.#bySession.get(channel.sessionId) === channel && this.#bySession.delete(channel.sessionId)
  }

  /** Records a connection as the one of its session. */
  bindSession(channel: ClientChannel): void {
    this.#bySession.set(channel.sessionId, channel)
  }

  /** Returns the connection of a session; undefined when it has none on this server. */
  ofSession(session: SessionId): ClientChannel | undefined {
    return this.#bySession.get(session)
  }

  /** Calls `action` when the last connection is removed, or now when there is none. */
  whenEmpty(action: () => void): void {
    if (this.#channels.size === 0) action()
    else this.#onEmpty = action
  }
}
