import { addressBlockOf, type Address, type Cancel, type Connection, type Listener } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import { MEMBER_EXTENSION_BYTES } from '../core/zab/index.ts'
import { callBackAddresses, CallBacks } from './call-backs.ts'
import { ElectionConnection, frameOf } from './election-connection.ts'
import { encodeHello, formatAddress, HelloReader, type ReceivedHello } from './election-hello.ts'
import { LimitedLog } from './limited-log.ts'
import { HelloWithLoginReader } from './login-readers.ts'
import { MemberPort, type MemberPortOptions } from './member-port.ts'
import type { ListenAddress } from './membership.ts'
import type { MemberSecurity } from './member-security.ts'
import type { ClaimingPeer } from './peer-addresses.ts'
import type { Refusal } from './pending-connections.ts'

/** Options of the election connections of a server. Times are in milliseconds. */
export interface ElectionConnectionsOptions extends Pick<
  MemberPortOptions<ReceivedHello>,
  'network' | 'clock' | 'logger' | 'maxUnidentified' | 'bindAttempts'
> {
  readonly self: ServerId
  /** Makes sure that a connection belongs to the server that it claims to come from. Absent where every connection is believed. */
  readonly security?: Pick<MemberSecurity, 'acceptLogin' | 'refusalOfAccepted' | 'open' | 'isAuthenticated'>
  /** Returns the addresses on which to listen now; at least one. */
  readonly listenAddresses: () => readonly ListenAddress[]
  /** Returns the addresses that the hello announces to other servers now. */
  readonly announcedAddresses: () => readonly Address[]
  /** Whether the hello announces all addresses, not only the first one. Servers before 3.6 cannot read such a hello. */
  readonly multiAddress: boolean
  /** Returns the election addresses of a member by the known configurations; none for a server that no configuration names. */
  readonly addressesOf: (id: ServerId) => readonly Address[]
  /** Returns, or resolves to, why a connection that claims an id is refused because of its address; undefined when it is not. */
  readonly addressRefusal: (
    id: ServerId,
    peer: ClaimingPeer,
  ) => Refusal | undefined | Promise<Refusal | undefined>
  /** Whether servers that no configuration names may connect, as joining servers do before a reconfiguration. */
  readonly acceptsUnknownServers: boolean
  /** Returns the message for a server that is refused since no configuration names it; undefined for none. */
  readonly noticeForUnknown: () => Uint8Array | undefined
  /**
   * Called with each message. The bytes are a view that is valid during the call. `isAuthenticated`: the sender has proved that
   * it is `from`.
   */
  readonly received: (from: ServerId, payload: Uint8Array, isAuthenticated: boolean) => void
  /** Called when the connection to a server is established or lost. */
  readonly reachabilityChanged?: (to: ServerId, reachable: boolean) => void
  readonly connectTimeoutMs: number
  readonly helloTimeoutMs: number
  readonly minBackoffMs: number
  readonly maxBackoffMs: number
  readonly maxUnknownServers: number
  /** How long a server that no configuration names may be silent. A looking one repeats its vote once a minute. */
  readonly maxSilenceMs: number
}

export const electionConnectionDefaults = {
  multiAddress: false,
  addressRefusal: () => undefined,
  acceptsUnknownServers: false,
  noticeForUnknown: () => undefined,
  connectTimeoutMs: 5000,
  helloTimeoutMs: 5000,
  minBackoffMs: 100,
  maxBackoffMs: 5000,
  maxUnidentified: 64,
  maxUnknownServers: 16,
  maxSilenceMs: 150_000,
  bindAttempts: 3,
} as const

const keyOf = ({ host = '*', port }: ListenAddress): string => `${host} ${port}`

const NO_BYTES = new Uint8Array(0)
/** Most lines of the log in 10 s about connections to a member, or to servers of one address that no configuration names. */
const LINES = 8
/** The age at which a connection is replaced because the other server asks for one, in milliseconds. */
const MIN_AGE_MS = 1000

/** A connection that this server has opened, after its hello. `rest` are the bytes that have arrived after a login. */
interface Dialed {
  readonly connection: Connection
  readonly rest: Uint8Array
}

/** Another server, with or without a connection. */
interface Peer {
  readonly id: ServerId
  connection: ElectionConnection | undefined
  /** When the connection was established, on the monotonic clock. */
  connectedAt: number
  /** When its last message arrived, on the monotonic clock. */
  receivedAt: number
  dialing: AbortController | undefined
  /** Stops the timer for messages of a server that no configuration names. */
  cancelSilence: Cancel | undefined
  cancelRetry: Cancel | undefined
  backoffMs: number
  /** The newest message, until it is written. */
  unsent: Uint8Array | undefined
  /** The message written last. It may have been lost with its connection, so the next connection starts with it. */
  lastSent: Uint8Array | undefined
  /** Where its last hello came from. */
  from: Pick<Address, 'host'>
  /** The addresses of its last hello that may be dialed. */
  announced: readonly Address[]
  /** Why it cannot be reached, as the log already says. */
  loggedReason: string | undefined
}

/**
 * The connections for votes: one to each other server (quorum-protocol 3).
 *
 * - The server with the larger id opens the connection. A smaller one that needs a connection connects, sends its hello and closes; the
 * larger one then closes its connection, if any, and connects (quorum-protocol 3.3).
 * - Only the newest message to a server matters: it replaces one that is not sent yet (quorum-protocol 3.4).
 * - A new connection starts with the last message, which may have been lost with the previous connection.
 * - A lost connection to a member is opened again, after a backoff that grows while connections fail at once.
 * - The port follows the configuration: the new address is bound before the old one is closed, except where only the host differs.
 */
export class ElectionConnections {
  readonly #options: ElectionConnectionsOptions
  readonly #port: MemberPort<ReceivedHello>
  readonly #peers = new Map<ServerId, Peer>()
  readonly #callBacks: CallBacks
  readonly #log: LimitedLog
  /** By listen address. */
  readonly #listeners = new Map<string, { readonly at: ListenAddress; readonly listener: Listener }>()
  /** Moves of the port run one after the other. */
  #moving: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(options: ElectionConnectionsOptions) {
    this.#options = options
    const { clock, logger } = options
    this.#callBacks = new CallBacks(clock)
    this.#log = new LimitedLog(clock, logger, LINES)
    this.#port = new MemberPort({
      ...options,
      port: 'election port',
      timeoutMs: options.helloTimeoutMs,
      createReader: (connection) => {
        const login = options.security?.acceptLogin(connection, 'election')
        return login === undefined ? new HelloReader() : new HelloWithLoginReader(login)
      },
      refusal: ({ hello }, accepted) => this.#refusalOf(hello.id, accepted),
      identified: (received, connection) => this.#onIdentified(received, connection),
    })
  }

  /** Listens on all addresses, or on none: rejects with a `NetworkError` when one cannot be bound after all attempts. */
  async start(): Promise<void> {
    try {
      for (const at of this.#options.listenAddresses()) await this.#listen(at)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** The addresses on which it listens. */
  get addresses(): Address[] {
    return [...this.#listeners.values()].map(({ listener }) => listener.address)
  }

  /** The ids of the connected servers, ascending. */
  get connected(): ServerId[] {
    return [...this.#peers.values()]
      .filter(({ connection }) => connection !== undefined)
      .map(({ id }) => id)
      .sort((a, b) => a - b)
  }

  /** Sends a message, as soon as there is a connection. A newer message to the same server replaces it until then. */
  send(to: ServerId, payload: Uint8Array): void {
    if (this.#isClosed) return
    const peer = this.#peerOf(to)
    peer.unsent = payload
    if (peer.connection === undefined) this.#ensureConnection(peer)
    else this.#flush(peer)
  }

  /** Opens a connection, with retries, if there is none. */
  connect(to: ServerId): void {
    if (!this.#isClosed) this.#ensureConnection(this.#peerOf(to))
  }

  /**
   * Closes the connections to former members after a change of the configurations, and those that cannot be of a server that is
   * named now; moves the port if its address has changed.
   */
  membersChanged(): void {
    for (const peer of this.#peers.values()) {
      if (this.#isMember(peer.id)) this.#checkAddress(peer)
      else this.#remove(peer)
    }
    this.#moving = this.#moving.then(() => this.#movePort())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#port.close()
    for (const peer of this.#peers.values()) this.#remove(peer)
    await this.#moving
    await Promise.all([...this.#listeners.values()].map(({ listener }) => listener.close()))
  }

  // Port

  async #movePort(): Promise<void> {
    const wanted = new Map(this.#options.listenAddresses().map((at) => [keyOf(at), at]))
    const isBound = [...wanted.keys()].every((key) => this.#listeners.has(key))
    if (this.#isClosed || wanted.size === 0 || (isBound && wanted.size === this.#listeners.size)) return
    const { logger } = this.#options
    const obsolete = [...this.#listeners.values()].map(({ at }) => at).filter((at) => !wanted.has(keyOf(at)))
    const missing = [...wanted.values()].filter((at) => !this.#listeners.has(keyOf(at)))
    // Two hosts may be names of one address, where this server itself would occupy the port.
    const inTheWay = obsolete.filter(({ port }) => missing.some((at) => at.port === port))
    try {
      for (const at of inTheWay) await this.#stopListening(at)
      for (const at of missing) await this.#listen(at)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (this.#isClosed) return
      logger.error({ reason }, 'The election port cannot be moved to the address in the configuration')
      return this.#listenAgain(inTheWay)
    }
    for (const at of obsolete) await this.#stopListening(at)
    const addresses = this.addresses.map(({ host, port }) => `${host}:${port}`)
    logger.info({ addresses }, 'The election port has moved to the address in the configuration')
  }

  /** Opens the addresses again that a failed move has closed. */
  async #listenAgain(addresses: readonly ListenAddress[]): Promise<void> {
    for (const at of addresses) {
      try {
        await this.#listen(at)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (!this.#isClosed)
          this.#options.logger.error(
            { reason },
            'The election port cannot be opened again at its old address',
          )
      }
    }
  }

  async #listen(at: ListenAddress): Promise<void> {
    const listener = await this.#port.bind(at)
    this.#listeners.set(keyOf(at), { at, listener })
    if (this.#isClosed) await listener.close()
  }

  async #stopListening(at: ListenAddress): Promise<void> {
    const open = this.#listeners.get(keyOf(at))
    this.#listeners.delete(keyOf(at))
    await open?.listener.close()
  }

  #onIdentified({ hello, rest }: ReceivedHello, connection: Connection): void {
    const peer = this.#peerOf(hello.id)
    peer.from = connection.remote
    if (peer.id > this.#options.self) this.#adopt(peer, connection, rest)
    else this.#callBack(peer, connection, hello.addresses)
  }

  #refusalOf(id: ServerId, accepted: Connection): Refusal | undefined | Promise<Refusal | undefined> {
    const { self, security, addressRefusal, noticeForUnknown } = this.#options
    const unwanted = this.#reasonToRefuse(id)
    const reason = unwanted ?? security?.refusalOfAccepted(accepted, id)
    if (reason !== undefined) {
      const notice = unwanted === undefined || id === self ? undefined : noticeForUnknown()
      return { peer: id, reason, ...(notice === undefined ? {} : { notice: frameOf(notice) }) }
    }
    if (security?.isAuthenticated(accepted) === true) return undefined
    if (this.#peers.get(id)?.connection?.isAuthenticated === true)
      return {
        peer: id,
        reason: `server ${id} is connected, has proved its id, and this connection has not`,
      }
    return addressRefusal(id, accepted)
  }

  #reasonToRefuse(id: ServerId): string | undefined {
    const { self, acceptsUnknownServers, maxUnknownServers } = this.#options
    if (id === self)
      return `it says that it is server ${id}, which is this one. Two servers may have the same myid.`
    if (this.#isMember(id)) return undefined
    if (!acceptsUnknownServers) return `server ${id} is not in the configuration.`
    const unknown = [...this.#peers.keys()].filter((other) => other !== id && !this.#isMember(other))
    return unknown.length < maxUnknownServers
      ? undefined
      : `${unknown.length} servers outside of the configuration are connected already.`
  }

  /**
   * Closes a connection that a server with a smaller id has opened, and opens one in the other direction. A new connection to it
   * stays: it may have asked for that one, and a server that claims its id cannot cut it off again and again. Too many hellos are
   * answered at the next dial.
   */
  #callBack(peer: Peer, connection: Connection, announced: readonly Address[]): void {
    const { clock, addressesOf } = this.#options
    connection.destroy()
    const isNew = clock.monotonic() - peer.connectedAt < MIN_AGE_MS
    if (peer.connection !== undefined && isNew) return
    if (!this.#callBacks.take(peer.id, this.#isMember(peer.id))) {
      if (peer.connection === undefined && peer.dialing === undefined && peer.cancelRetry === undefined)
        this.#scheduleRetry(peer)
      return
    }
    peer.announced = callBackAddresses(announced, connection.remote, addressesOf(peer.id))
    peer.connection?.close()
    peer.connection = undefined
    peer.cancelRetry?.()
    peer.cancelRetry = undefined
    this.#ensureConnection(peer)
  }

  // Peers

  /** Removes a server that was accepted before a configuration named it, and is at none of its addresses. */
  #checkAddress(peer: Peer): void {
    const { id, connection } = peer
    const isDialed = id < this.#options.self
    if (connection === undefined || isDialed || connection.isAuthenticated) return
    const decide = (refusal: Refusal | undefined): void => {
      if (refusal === undefined || peer.connection !== connection) return
      this.#port.logRejection(connection.remote, refusal)
      this.#remove(peer)
    }
    const refusal = this.#options.addressRefusal(id, connection)
    if (refusal instanceof Promise) void refusal.then(decide)
    else decide(refusal)
  }

  #isMember(id: ServerId): boolean {
    return this.#options.addressesOf(id).length > 0
  }

  /** Returns the key of log lines about a server. One that no configuration names counts by its address: a program may claim many ids. */
  #keyOf({ id, from }: Peer, what: string): string {
    return `${what} ${this.#isMember(id) ? id : addressBlockOf(from.host)}`
  }

  #peerOf(id: ServerId): Peer {
    let peer = this.#peers.get(id)
    if (peer === undefined) {
      peer = {
        id,
        connection: undefined,
        connectedAt: 0,
        receivedAt: 0,
        cancelSilence: undefined,
        dialing: undefined,
        cancelRetry: undefined,
        backoffMs: this.#options.minBackoffMs,
        unsent: undefined,
        lastSent: undefined,
        from: { host: '' },
        announced: [],
        loggedReason: undefined,
      }
      this.#peers.set(id, peer)
    }
    return peer
  }

  #remove(peer: Peer): void {
    this.#peers.delete(peer.id)
    peer.cancelRetry?.()
    peer.cancelSilence?.()
    peer.dialing?.abort()
    peer.connection?.close()
    peer.connection = undefined
  }

  #ensureConnection(peer: Peer): void {
    if (peer.connection === undefined && peer.dialing === undefined && peer.cancelRetry === undefined)
      void this.#dial(peer)
  }

  /** Opens a connection at the first address that answers. Configured addresses come before those that a hello announced. */
  async #dial(peer: Peer): Promise<void> {
    const dialing = (peer.dialing = new AbortController())
    const known = [...this.#options.addressesOf(peer.id), ...peer.announced]
    const addresses = new Map(known.map((address) => [formatAddress(address), address])).values()
    let reason = 'no address of it is known'
    for (const address of addresses) {
      const dialed = await this.#tryAddress(peer.id, address, dialing.signal)
      if (dialing.signal.aborted) {
        if (typeof dialed !== 'string') discard(dialed.connection)
        return
      }
      if (typeof dialed !== 'string') {
        peer.dialing = undefined
        return this.#onDialed(peer, dialed)
      }
      reason = dialed
    }
    peer.dialing = undefined
    // A server that is down at first may show a wrong certificate later.
    if (peer.loggedReason !== reason)
      this.#log.log(
        'info',
        this.#keyOf(peer, 'unreachable'),
        { peer: peer.id, reason },
        'Another server cannot be reached',
      )
    peer.loggedReason = reason
    this.#scheduleRetry(peer)
  }

  /** Sends the hello and logs in. Resolves to the connection with the bytes after a login, or to the reason why there is none. */
  async #tryAddress(id: ServerId, address: Address, signal: AbortSignal): Promise<Dialed | string> {
    const { self, announcedAddresses, multiAddress, network, security, clock, connectTimeoutMs } =
      this.#options
    const timeout = new AbortController()
    const cancel = clock.after(connectTimeoutMs, 'election connection', () => timeout.abort())
    const either = AbortSignal.any([signal, timeout.signal])
    try {
      const connection = await network.connect(address, { signal: either })
      if (signal.aborted) return { connection, rest: NO_BYTES }
      const hello = encodeHello(self, announcedAddresses(), multiAddress)
      const target = { id, port: 'election', host: address.host, hello } as const
      if (security !== undefined) return { connection, rest: await security.open(connection, target, either) }
      connection.write(hello)
      return { connection, rest: NO_BYTES }
    } catch (error) {
      if (timeout.signal.aborted)
        return `${formatAddress(address)} did not answer within ${connectTimeoutMs} ms`
      return error instanceof Error ? error.message : String(error)
    } finally {
      cancel()
    }
  }

  #onDialed(peer: Peer, { connection, rest }: Dialed): void {
    if (peer.id < this.#options.self) return this.#adopt(peer, connection, rest)
    this.#endAfterHello(peer, { connection, rest })
    // If the other server does not connect, this one dials again.
    this.#scheduleRetry(peer)
  }

  /** Ends a connection to a server that is to connect back. Passes on what a server that refuses this one says before it closes. */
  #endAfterHello({ id }: Peer, { connection, rest }: Dialed): void {
    const { clock, helloTimeoutMs, received, security } = this.#options
    const isAuthenticated = security?.isAuthenticated(connection) === true
    const cancel = clock.after(helloTimeoutMs, 'end of an election connection', () => connection.destroy())
    const refused = new ElectionConnection(connection, clock, {
      isNamed: () => this.#isMember(id),
      received: (payload) => {
        if (payload.length === MEMBER_EXTENSION_BYTES) received(id, payload, isAuthenticated)
      },
      drained() {},
      lost: cancel,
    })
    if (rest.length > 0) refused.receive(rest)
    connection.end()
  }

  /** Makes this connection the only one to the peer. `rest` are the bytes after its hello. */
  #adopt(peer: Peer, connection: Connection, rest: Uint8Array): void {
    const { clock, received } = this.#options
    peer.connection?.close()
    peer.dialing?.abort()
    peer.dialing = undefined
    peer.cancelRetry?.()
    peer.cancelRetry = undefined
    peer.loggedReason = undefined
    peer.connectedAt = clock.monotonic()
    const adopted = new ElectionConnection(connection, clock, {
      isNamed: () => this.#isMember(peer.id),
      received: (payload) => {
        peer.receivedAt = clock.monotonic()
        received(peer.id, payload, adopted.isAuthenticated)
      },
      drained: () => this.#flush(peer),
      lost: (reason) => this.#onLost(peer, adopted, reason),
    })
    peer.connection = adopted
    if (!this.#isMember(peer.id)) this.#awaitMessage(peer, adopted, this.#options.helloTimeoutMs)
    adopted.isAuthenticated = this.#options.security?.isAuthenticated(connection) === true
    const facts = { peer: peer.id, address: formatAddress(connection.remote) }
    this.#log.log('info', this.#keyOf(peer, 'connected'), facts, 'Connected for elections')
    this.#options.reachabilityChanged?.(peer.id, true)
    peer.unsent ??= peer.lastSent
    this.#flush(peer)
    if (rest.length > 0) adopted.receive(rest)
  }

  #flush(peer: Peer): void {
    if (peer.unsent === undefined || peer.connection?.isWritable !== true) return
    peer.lastSent = peer.unsent
    peer.unsent = undefined
    peer.connection.write(peer.lastSent)
  }

  /**
   * Closes the connection of a server that no configuration names unless a message of it arrives in time, so that silent ones do
   * not keep joining servers out.
   */
  #awaitMessage(peer: Peer, connection: ElectionConnection, timeoutMs: number): void {
    const { clock, maxSilenceMs } = this.#options
    const since = clock.monotonic()
    peer.cancelSilence?.()
    peer.cancelSilence = clock.after(timeoutMs, `messages of the unknown server ${peer.id}`, () => {
      if (peer.connection !== connection || this.#isMember(peer.id)) return
      if (peer.receivedAt >= since) return this.#awaitMessage(peer, connection, maxSilenceMs)
      connection.close()
      this.#onLost(peer, connection, `it sent nothing for ${timeoutMs} ms, and no configuration names it`)
    })
  }

  #onLost(peer: Peer, connection: ElectionConnection, reason: string): void {
    if (peer.connection !== connection) return
    peer.connection = undefined
    const { clock, minBackoffMs, maxBackoffMs } = this.#options
    const facts = { peer: peer.id, reason }
    this.#log.log('info', this.#keyOf(peer, 'lost'), facts, 'A connection for elections is lost')
    this.#options.reachabilityChanged?.(peer.id, false)
    if (connection.hasReceived || clock.monotonic() - peer.connectedAt >= maxBackoffMs)
      peer.backoffMs = minBackoffMs
    this.#scheduleRetry(peer)
  }

  /** Dials a member again after its backoff. A server that no configuration names is removed: it has to connect to this one. */
  #scheduleRetry(peer: Peer): void {
    if (this.#isClosed) return
    if (!this.#isMember(peer.id)) {
      if (peer.connection === undefined) this.#remove(peer)
      return
    }
    const delay = peer.backoffMs
    peer.backoffMs = Math.min(delay * 2, this.#options.maxBackoffMs)
    peer.cancelRetry?.()
    peer.cancelRetry = this.#options.clock.after(delay, `election connection to ${peer.id}`, () => {
      peer.cancelRetry = undefined
      this.#ensureConnection(peer)
    })
  }
}

/** Closes a connection that is not needed any more. */
function discard(connection: Connection): void {
  connection.setHandler({ data() {}, drain() {}, closed() {} })
  connection.destroy()
}
