import {
  NetworkError,
  type Address,
  type Cancel,
  type Clock,
  type Connection,
  type Listener,
} from '@zabra/runtime'
import type { Logger, Network } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import { PendingConnections } from './pending-connections.ts'
import { encodeHello, formatAddress, type Hello } from './election-hello.ts'
import { ElectionConnection } from './election-connection.ts'

/** What the connections of the election port are made of. Times are in milliseconds. */
export interface ElectionConnectionsOptions {
  readonly self: ServerId
  readonly network: Network
  readonly clock: Clock
  readonly logger: Logger
  /** Where others connect to, at this moment; at least one. Without a host on all interfaces. */
  readonly listenAddresses: () => readonly Place[]
  /** Where others are told to connect to, at this moment. */
  readonly announcedAddresses: () => readonly Address[]
  /** Whether all addresses are announced, not only the first one. Servers before 3.6 cannot read that. */
  readonly multiAddress: boolean
  /** Election addresses of a member by the configurations that are known; none for a stranger. */
  readonly addressesOf: (id: ServerId) => readonly Address[]
  /** Whether servers that no configuration names may come in, as joiners do before an ensemble is reconfigured. */
  readonly acceptsUnknownServers: boolean
  /** A message came. The bytes are a view for the length of the call. */
  readonly received: (from: ServerId, payload: Uint8Array) => void
  /** A connection has come about, or has broken. */
  readonly reachabilityChanged?: (to: ServerId, reachable: boolean) => void
  readonly connectTimeoutMs: number
  readonly helloTimeoutMs: number
  readonly minBackoffMs: number
  readonly maxBackoffMs: number
  readonly maxUnidentified: number
  readonly maxUnknownServers: number
  /** How often binding a port is tried, one second apart; 0 for ever. */
  readonly bindAttempts: number
}

/** What is usual. */
export const electionConnectionDefaults = {
  multiAddress: false,
  acceptsUnknownServers: false,
  connectTimeoutMs: 5000,
  helloTimeoutMs: 5000,
  minBackoffMs: 100,
  maxBackoffMs: 5000,
  maxUnidentified: 64,
  maxUnknownServers: 16,
  bindAttempts: 3,
} as const

const BIND_PAUSE_MS = 1000

/** Where to listen. */
interface Place {
  readonly host?: string
  readonly port: number
}

const nameOf = ({ host = '*', port }: Place): string => `${host} ${port}`

interface Peer {
  readonly id: ServerId
  link: ElectionConnection | undefined
  /** On the monotonic clock: since when there is the link. */
  since: number
  dialing: AbortController | undefined
  cancelRetry: Cancel | undefined
  backoffMs: number
  /** The newest message, while it is not written. */
  unsent: Uint8Array | undefined
  /** The message written last: it may have been lost with its connection, so the next one begins with it. */
  last: Uint8Array | undefined
  /** Where it said that it can be reached. */
  announced: readonly Address[]
  /** Whether the log has it that it cannot be reached. */
  missed: boolean
}

/**
 * One connection to each other server, for votes. Rules are numbered, with their section in the description of the
 * server protocol in brackets.
 *
 * L1 There is one connection between two servers, and the one with the larger id has opened it.
 * L2 So the smaller one that wants a connection opens one, says who it is and hangs up, as one rings a doorbell;
 *    the larger one drops what it still had and calls back.
 * L3 Only the newest message to a server matters: one that is not sent yet is replaced.
 * L4 A new connection begins with the last message, in case the former one took it to its grave.
 * L5 A connection to a member that breaks is opened again, after a pause that grows while it breaks at once.
 * L6 Nobody is believed to be a member who does not say so in time, and strangers come in only when they may.
 * L7 The port follows the configuration: the new one is opened before the old one is closed.
 */
export class ElectionConnections {
  readonly #options: ElectionConnectionsOptions
  readonly #doorkeeper: PendingConnections
  readonly #peers = new Map<ServerId, Peer>()
  /** By where they listen. */
  readonly #listeners = new Map<string, Listener>()
  #moving: Promise<void> = Promise.resolve()
  #closed = false
  #cancelBind: Cancel = () => {}
  #stopBinding: () => void = () => {}

  constructor(options: ElectionConnectionsOptions) {
    this.#options = options
    const { clock, logger, maxUnidentified, helloTimeoutMs } = options
    this.#doorkeeper = new PendingConnections({
      clock,
      logger,
      maxUnidentified,
      helloTimeoutMs,
      identified: (hello, wire, rest) => this.#identified(hello, wire, rest),
    })
  }

  /** Listens on all addresses, or on none: rejects with a `NetworkError` when one cannot be had after all attempts. */
  async start(): Promise<void> {
    try {
      for (const at of this.#options.listenAddresses()) await this.#listen(at)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** Where it listens. */
  get addresses(): Address[] {
    return [...this.#listeners.values()].map(({ address }) => address)
  }

  /** Servers that there is a connection to, ascending. */
  get connected(): ServerId[] {
    return [...this.#peers.values()]
      .filter(({ link }) => link !== undefined)
      .map(({ id }) => id)
      .sort((a, b) => a - b)
  }

  /** Sends a message, as soon as there is a connection; a newer one to the same server takes its place until then. */
  send(to: ServerId, payload: Uint8Array): void {
    if (this.#closed) return
    const peer = this.#peer(to)
    peer.unsent = payload
    if (peer.link === undefined) this.#want(peer)
    else this.#flush(peer)
  }

  /** Sees that there is a connection, or will be. */
  connect(to: ServerId): void {
    if (!this.#closed) this.#want(this.#peer(to))
  }

  /** The configurations have changed: whoever is no member any more is let go, and the port moves if it has to (L7). */
  membersChanged(): void {
    for (const peer of this.#peers.values()) if (!this.#isMember(peer.id)) this.#forget(peer)
    this.#moving = this.#moving.then(() => this.#move())
  }

  async #move(): Promise<void> {
    const wanted = new Map(this.#options.listenAddresses().map((at) => [nameOf(at), at]))
    const stays = [...wanted.keys()].every((name) => this.#listeners.has(name))
    if (this.#closed || wanted.size === 0 || (stays && wanted.size === this.#listeners.size)) return
    const { logger } = this.#options
    try {
      for (const [name, at] of wanted) if (!this.#listeners.has(name)) await this.#listen(at)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (!this.#closed)
        logger.error({ reason }, 'The election port cannot move to where the configuration says')
      return
    }
    for (const [name, listener] of this.#listeners) {
      if (wanted.has(name)) continue
      this.#listeners.delete(name)
      await listener.close()
    }
    const places = this.addresses.map(({ host, port }) => `${host}:${port}`)
    logger.info({ places }, 'The election port has moved, as the configuration says')
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancelBind()
    this.#stopBinding()
    for (const peer of this.#peers.values()) this.#forget(peer)
    this.#doorkeeper.close()
    await this.#moving
    await Promise.all([...this.#listeners.values()].map((listener) => listener.close()))
  }

  // The port

  async #listen(at: Place): Promise<void> {
    const listener = await this.#bind(at)
    this.#listeners.set(nameOf(at), listener)
    if (this.#closed) await listener.close()
  }

  async #bind(at: Place): Promise<Listener> {
    const { network, logger, bindAttempts } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        return await network.listen(
          { ...at, keepAlive: true },
          (wire) => this.#accept(wire),
          (error) =>
            logger.warn({ error: error.message }, 'A server could not be accepted on the election port'),
        )
      } catch (error) {
        if (!(error instanceof NetworkError) || attempt === bindAttempts || this.#closed) throw error
        logger.warn({ reason: error.message, attempt }, 'The election port cannot be had yet; trying again')
        await this.#pause()
        if (this.#closed) throw error
      }
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#stopBinding = resolve
      this.#cancelBind = this.#options.clock.after(BIND_PAUSE_MS, 'election port', resolve)
    })
  }

  #accept(wire: Connection): void {
    if (this.#closed) wire.destroy()
    else this.#doorkeeper.add(wire)
  }

  #identified(hello: Hello, wire: Connection, rest: Uint8Array): void {
    const refusal = this.#refusal(hello.id)
    if (refusal !== undefined) {
      this.#doorkeeper.logRejection(wire, { peer: hello.id, reason: refusal })
      return wire.destroy()
    }
    const peer = this.#peer(hello.id)
    peer.announced = hello.addresses
    if (peer.id > this.#options.self) this.#adopt(peer, wire, rest)
    else this.#callBack(peer, wire)
  }

  #refusal(id: ServerId): string | undefined {
    const { self, acceptsUnknownServers: admitsStrangers, maxUnknownServers: maxStrangers } = this.#options
    if (id === self)
      return `it says that it is server ${id}, which is this one. Two servers may have the same myid.`
    if (this.#isMember(id)) return undefined
    if (!admitsStrangers) return `server ${id} is not in the configuration.`
    const strangers = [...this.#peers.keys()].filter((other) => other !== id && !this.#isMember(other))
    return strangers.length < maxStrangers
      ? undefined
      : `${strangers.length} servers outside of the configuration are here already.`
  }

  /** L2: the smaller one has rung. */
  #callBack(peer: Peer, wire: Connection): void {
    wire.destroy()
    peer.link?.close()
    peer.link = undefined
    peer.cancelRetry?.()
    peer.cancelRetry = undefined
    this.#want(peer)
  }

  // Peers

  #isMember(id: ServerId): boolean {
    return this.#options.addressesOf(id).length > 0
  }

  #peer(id: ServerId): Peer {
    let peer = this.#peers.get(id)
    if (peer === undefined) {
      peer = {
        id,
        link: undefined,
        since: 0,
        dialing: undefined,
        cancelRetry: undefined,
        backoffMs: this.#options.minBackoffMs,
        unsent: undefined,
        last: undefined,
        announced: [],
        missed: false,
      }
      this.#peers.set(id, peer)
    }
    return peer
  }

  #forget(peer: Peer): void {
    this.#peers.delete(peer.id)
    peer.cancelRetry?.()
    peer.dialing?.abort()
    peer.link?.close()
    peer.link = undefined
  }

  #want(peer: Peer): void {
    if (peer.link === undefined && peer.dialing === undefined && peer.cancelRetry === undefined)
      void this.#dial(peer)
  }

  /** Opens a connection at the first address that answers. Configured ones come before what the server said itself. */
  async #dial(peer: Peer): Promise<void> {
    const dialing = (peer.dialing = new AbortController())
    const known = [...this.#options.addressesOf(peer.id), ...peer.announced]
    const addresses = new Map(known.map((address) => [formatAddress(address), address])).values()
    let reason = 'no address of it is known'
    for (const address of addresses) {
      const tried = await this.#tryAddress(address, dialing.signal)
      if (dialing.signal.aborted) {
        if (typeof tried !== 'string') discard(tried)
        return
      }
      if (typeof tried !== 'string') {
        peer.dialing = undefined
        return this.#dialed(peer, tried)
      }
      reason = tried
    }
    peer.dialing = undefined
    if (!peer.missed) this.#options.logger.info({ peer: peer.id, reason }, 'Another server cannot be reached')
    peer.missed = true
    this.#retryLater(peer)
  }

  /** The connection, or why there is none. */
  async #tryAddress(address: Address, signal: AbortSignal): Promise<Connection | string> {
    const { network, clock, connectTimeoutMs } = this.#options
    const patience = new AbortController()
    const cancel = clock.after(connectTimeoutMs, 'election connection', () => patience.abort())
    try {
      return await network.connect(address, { signal: AbortSignal.any([signal, patience.signal]) })
    } catch (error) {
      if (patience.signal.aborted)
        return `${formatAddress(address)} did not answer within ${connectTimeoutMs} ms`
      return error instanceof Error ? error.message : String(error)
    } finally {
      cancel()
    }
  }

  #dialed(peer: Peer, wire: Connection): void {
    const { self, announcedAddresses: announce, multiAddress } = this.#options
    wire.write(encodeHello(self, announce(), multiAddress))
    if (peer.id < self) return this.#adopt(peer, wire, new Uint8Array(0))
    this.#hangUp(wire)
    // L2: if it does not call back, it is rung again.
    this.#retryLater(peer)
  }

  #hangUp(wire: Connection): void {
    const { clock, helloTimeoutMs } = this.#options
    const cancel = clock.after(helloTimeoutMs, 'end of an election connection', () => wire.destroy())
    wire.setHandler({ data() {}, drain() {}, closed: cancel })
    wire.end()
  }

  /** L1, L4: this connection is the one to the peer from now on. */
  #adopt(peer: Peer, wire: Connection, rest: Uint8Array): void {
    const { clock, logger, received: heard } = this.#options
    peer.link?.close()
    peer.dialing?.abort()
    peer.dialing = undefined
    peer.cancelRetry?.()
    peer.cancelRetry = undefined
    peer.missed = false
    peer.since = clock.monotonic()
    const link = new ElectionConnection(wire, {
      received: (payload) => heard(peer.id, payload),
      drained: () => this.#flush(peer),
      lost: (reason) => this.#lost(peer, link, reason),
    })
    peer.link = link
    logger.info({ peer: peer.id, address: formatAddress(wire.remote) }, 'Connected for elections')
    this.#options.reachabilityChanged?.(peer.id, true)
    peer.unsent ??= peer.last
    this.#flush(peer)
    if (rest.length > 0) link.receive(rest)
  }

  #flush(peer: Peer): void {
    if (peer.unsent === undefined || peer.link?.writable !== true) return
    peer.last = peer.unsent
    peer.unsent = undefined
    peer.link.write(peer.last)
  }

  #lost(peer: Peer, link: ElectionConnection, reason: string): void {
    if (peer.link !== link) return
    peer.link = undefined
    const { clock, logger, minBackoffMs, maxBackoffMs } = this.#options
    logger.info({ peer: peer.id, reason }, 'A connection for elections is gone')
    this.#options.reachabilityChanged?.(peer.id, false)
    if (link.hasReceived || clock.monotonic() - peer.since >= maxBackoffMs) peer.backoffMs = minBackoffMs
    this.#retryLater(peer)
  }

  /** L5. A stranger comes back by itself, or not. */
  #retryLater(peer: Peer): void {
    if (this.#closed) return
    if (!this.#isMember(peer.id)) {
      if (peer.link === undefined) this.#forget(peer)
      return
    }
    const wait = peer.backoffMs
    peer.backoffMs = Math.min(wait * 2, this.#options.maxBackoffMs)
    peer.cancelRetry?.()
    peer.cancelRetry = this.#options.clock.after(wait, `election connection to ${peer.id}`, () => {
      peer.cancelRetry = undefined
      this.#want(peer)
    })
  }
}

/** Ends a connection that nobody wants any more. */
function discard(wire: Connection): void {
  wire.setHandler({ data() {}, drain() {}, closed() {} })
  wire.destroy()
}
