import type { Random } from '@zabra/runtime'
import type { ServerAddress } from '../platform.ts'
import { randomFraction } from '../random-fraction.ts'
import { addressKey } from './connect-string.ts'

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
  readonly fresh: ServerAddress[]
  readonly old: ServerAddress[]
  readonly chanceOfFresh: number
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
  onConnected(attachment: ConnectedServer): void {
    this.#lastConnected = attachment
    this.#rebalance = undefined
    // After a failure, continue with the next server instead of this one.
    this.#current = this.#servers.findIndex((server) => addressKey(server) === addressKey(attachment.server))
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
    const now = shuffle ? shuffled(servers, this.#random) : [...servers]
    const attached = this.#currentServer(live)
    const stays = now.some((server) => isConnectedTo(server, attached))
    if (stays && now.length === before.length && now.every((server) => includes(before, server))) return false
    const old = now.filter((server) => includes(before, server))
    const fresh = now.filter((server) => !includes(before, server))
    const { moves, chanceOfFresh } = this.#decideRebalance(before.length, now.length, old.length, stays)
    this.#servers = now
    this.#attempts = 0
    this.#rebalance = moves ? { fresh, old, chanceOfFresh } : undefined
    this.#current = moves ? -1 : now.findIndex((server) => isConnectedTo(server, attached))
    return moves
  }

  /** Decides whether the client moves, and the probability of choosing a new server then. */
  #decideRebalance(
    before: number,
    now: number,
    survivors: number,
    stays: boolean,
  ): { moves: boolean; chanceOfFresh: number } {
    if (now > before) {
      return { moves: !stays || randomFraction(this.#random) < 1 - before / now, chanceOfFresh: 1 }
    }
    if (stays) return { moves: false, chanceOfFresh: 0 }
    // Connected to a server of neither list while all old ones remain: no rebalancing is needed.
    const chanceOfOld = before === survivors ? 1 : (survivors * (before - now)) / (now * (before - survivors))
    return { moves: true, chanceOfFresh: 1 - chanceOfOld }
  }

  /** Returns the server that the decision is based on. A move in progress counts as completed. */
  #currentServer(live: ConnectedServer | undefined): ConnectedServer {
    if (this.#rebalance !== undefined) {
      const { fresh, old, chanceOfFresh } = this.#rebalance
      const next = chanceOfFresh > 0 ? (fresh[0] ?? old[0]) : (old[0] ?? fresh[0])
      return { server: next ?? this.#servers[0]! }
    }
    return live ?? this.#lastConnected ?? { server: this.#servers[0]! }
  }

  #nextInOrder(): ServerAddress {
    this.#current = (this.#current + 1) % this.#servers.length
    return this.#servers[this.#current]!
  }

  #nextInRebalance(moving: Rebalance): ServerAddress {
    const { fresh, old, chanceOfFresh } = moving
    const draw = randomFraction(this.#random)
    const next = fresh.length > 0 && (draw < chanceOfFresh || old.length === 0) ? fresh.shift() : old.shift()
    if (next !== undefined) return next
    this.#rebalance = undefined
    return this.#nextInOrder()
  }
}

const includes = (list: readonly ServerAddress[], server: ServerAddress): boolean =>
  list.some((other) => addressKey(other) === addressKey(server))

function isConnectedTo(server: ServerAddress, attached: ConnectedServer): boolean {
  if (addressKey(server) === addressKey(attached.server)) return true
  return (
    server.scheme === attached.server.scheme &&
    server.port === attached.server.port &&
    server.host === attached.host
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
