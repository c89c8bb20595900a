import { SessionMap } from '../core/session-map.ts'
import type { SessionId } from '../core/types.ts'
import type { ClientChannel } from './client-channel.ts'
import type { RefusalReason } from './stats.ts'

/** File descriptors that are kept free of clients: for logs, snapshots and the platform. */
const RESERVED_DESCRIPTORS = 64

export interface ConnectionLimits {
  /** Connections of one address; 0 is no limit. */
  readonly maxClientCnxns: number
  /** Connections in all; 0 is no limit. */
  readonly maxCnxns: number
  /** File descriptors that the process may open; -1 where unknown. */
  readonly maxDescriptors: number
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
  readonly #maxPerHost: number
  readonly #max: number
  /** What limits the connections in all. */
  readonly #limit: 'total' | 'descriptors'
  #onEmpty: () => void = () => {}

  constructor({ maxClientCnxns, maxCnxns, maxDescriptors }: ConnectionLimits) {
    this.#maxPerHost = maxClientCnxns > 0 ? maxClientCnxns : Infinity
    const descriptors = maxDescriptors > 0 ? Math.max(1, maxDescriptors - RESERVED_DESCRIPTORS) : Infinity
    this.#max = Math.min(maxCnxns > 0 ? maxCnxns : Infinity, descriptors)
    this.#limit = this.#max < descriptors ? 'total' : 'descriptors'
  }

  get size(): number {
    return this.#channels.size
  }

  [Symbol.iterator](): IterableIterator<ClientChannel> {
    return this.#channels.values()
  }

  /** Returns why no further connection of an address is accepted, or undefined when it is. */
  refusalOf(host: string): Refusal | undefined {
    const count = this.#countByHost.get(host) ?? 0
    if (count >= this.#maxPerHost)
      return {
        reason: 'address',
        text: `its address has ${count} connections already and maxClientCnxns is ${this.#maxPerHost}`,
      }
    if (this.size >= this.#max)
      return {
        reason: this.#limit,
        text: `there are ${this.size} connections, and maxCnxns and the file descriptors of the process allow ${this.#max}`,
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
