import type { Random } from '@zabra/runtime'
import type { ServerAddress } from '../platform.ts'
import { randomFraction } from '../random-fraction.ts'
import { addressKey, isOneOf } from './connect-string.ts'

/** The server that a client is, or was last, connected to. */
export interface ConnectedServer {
  readonly server: ServerAddress
  /** The address that the name resolved to at that time. */
  readonly host?: string
}

/** The next server to try, with the number of failed rounds. */
export interface Candidate {
  readonly server: ServerAddress
  /** Completed rounds over all servers since the last connection. */
  readonly round: number
  /** Attempts in this round before this one. */
  readonly position: number
}

interface Rebalance {
  readonly added: ServerAddress[]
  readonly remaining: ServerAddress[]
  readonly probabilityOfAdded: number
}

/**
 * Gives the servers in the order in which the client tries them, and rebalances clients when the list changes
 * (ZOOKEEPER-1355): each client moves with the probability that gives every server of the new list the same expected
 * share, without counting clients.
 */
export class HostProvider {
  readonly #random: Random
  #servers: readonly ServerAddress[]
  #current = -1
  #attempts = 0
  /** Set while the client moves after an update of the list. */
  #rebalance: Rebalance | undefined
  #lastConnected: ConnectedServer | undefined

  /** `shuffle` is off in tests that follow a trace. */
  constructor(servers: readonly ServerAddress[], random: Random, shuffle = true) {
    this.#random = random
    this.#servers = shuffle ? shuffled(servers, random) : servers
  }

  get size(): number {
    return this.#servers.length
  }

  get servers(): readonly ServerAddress[] {
    return this.#servers
  }

  get isRebalancing(): boolean {
    return this.#rebalance !== undefined
  }

  next(): Candidate {
    const round = Math.floor(this.#attempts / this.#servers.length)
    const position = this.#attempts % this.#servers.length
    this.#attempts++
    return {
      server: this.#rebalance === undefined ? this.#nextInOrder() : this.#nextInRebalance(this.#rebalance),
      round,
      position,
    }
  }

  /** Records that the attempt on the server given by `next` succeeded. */
  onConnected(connected: ConnectedServer): void {
    this.#lastConnected = connected
    this.#rebalance = undefined
    // After a failure, continue with the next server instead of this one.
    this.#current = this.#servers.findIndex((server) => addressKey(server) === addressKey(connected.server))
  }

  /** Resets the delays before attempts, after a connection has been useful. */
  resetAttempts(): void {
    this.#attempts = 0
  }

  /**
   * Takes a new server list. `live` is the server of the current connection, if any. Returns true if the client must
   * disconnect and connect to `next`.
   */
  updateServerList(
    servers: readonly ServerAddress[],
    live: ConnectedServer | undefined,
    shuffle = true,
  ): boolean {
    const before = this.#servers
    const after = shuffle ? shuffled(servers, this.#random) : [...servers]
    const current = this.#currentServer(live)
    const isStillListed = after.some((server) => isConnectedTo(server, current))
    const wasListed = isOneOf(before)
    if (isStillListed && after.length === before.length && after.every(wasListed)) return false
    const remaining = after.filter(wasListed)
    const added = after.filter((server) => !wasListed(server))
    const { mustMove, probabilityOfAdded } = this.#decideRebalance(
      before.length,
      after.length,
      remaining.length,
      isStillListed,
    )
    this.#servers = after
    this.#attempts = 0
    this.#rebalance = mustMove ? { added, remaining, probabilityOfAdded } : undefined
    this.#current = mustMove ? -1 : after.findIndex((server) => isConnectedTo(server, current))
    return mustMove
  }

  /** Decides whether the client moves, and the probability of choosing a new server then. */
  #decideRebalance(
    before: number,
    after: number,
    remainingCount: number,
    isStillListed: boolean,
  ): { mustMove: boolean; probabilityOfAdded: number } {
    if (after > before) {
      return {
        mustMove: !isStillListed || randomFraction(this.#random) < 1 - before / after,
        probabilityOfAdded: 1,
      }
    }
    if (isStillListed) return { mustMove: false, probabilityOfAdded: 0 }
    // Connected to a server of neither list while all old ones remain: no rebalancing is needed.
    const probabilityOfRemaining =
      before === remainingCount
        ? 1
        : (remainingCount * (before - after)) / (after * (before - remainingCount))
    return { mustMove: true, probabilityOfAdded: 1 - probabilityOfRemaining }
  }

  /** Returns the server that the decision is based on. A move in progress counts as completed. */
  #currentServer(live: ConnectedServer | undefined): ConnectedServer {
    if (this.#rebalance !== undefined) {
      const { added, remaining, probabilityOfAdded } = this.#rebalance
      const next = probabilityOfAdded > 0 ? (added[0] ?? remaining[0]) : (remaining[0] ?? added[0])
      return { server: next ?? this.#servers[0]! }
    }
    return live ?? this.#lastConnected ?? { server: this.#servers[0]! }
  }

  #nextInOrder(): ServerAddress {
    this.#current = (this.#current + 1) % this.#servers.length
    return this.#servers[this.#current]!
  }

  #nextInRebalance(moving: Rebalance): ServerAddress {
    const { added, remaining, probabilityOfAdded } = moving
    const fraction = randomFraction(this.#random)
    const next =
      added.length > 0 && (fraction < probabilityOfAdded || remaining.length === 0)
        ? added.shift()
        : remaining.shift()
    if (next !== undefined) return next
    this.#rebalance = undefined
    return this.#nextInOrder()
  }
}

function isConnectedTo(server: ServerAddress, current: ConnectedServer): boolean {
  if (addressKey(server) === addressKey(current.server)) return true
  return (
    server.scheme === current.server.scheme &&
    server.port === current.server.port &&
    server.host === current.host
  )
}

function shuffled<T>(list: readonly T[], random: Random): readonly T[] {
  if (list.length < 2) return list
  const copy = [...list]
  for (let i = copy.length - 1; i > 0; i--) {
    const j = random.below(i + 1)
    ;[copy[i], copy[j]] = [copy[j]!, copy[i]!]
  }
  return copy
}
