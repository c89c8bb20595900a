import type { Clock } from './clock.ts'
import {
  NetworkError,
  type AbortSignalLike,
  type Address,
  type Connection,
  type ConnectionHandler,
  type Listener,
  type Network,
  type PeerIdentity,
} from './network.ts'

const HIGH_WATER = 64 * 1024
const HOST = '127.0.0.1'

/** A network inside the process. Bytes arrive in later turns of the clock, in order; nothing is lost unless a test cuts a connection. */
export class MemoryNetwork implements Network {
  readonly #clock: Clock
  readonly #listeners = new Map<number, (connection: Connection) => void>()
  #nextPort = 49_152
  /** Longest chunk that is delivered; tests make it small to split frames. */
  chunkBytes = 64 * 1024

  constructor(clock: Clock) {
    this.#clock = clock
  }

  listen(
    { port }: { host?: string; port: number },
    accepted: (connection: Connection) => void,
  ): Promise<Listener> {
    const own = port === 0 ? this.#nextPort++ : port
    if (this.#listeners.has(own)) {
      const message = `Cannot listen on ${HOST}:${own} (EADDRINUSE). Another program listens there. Stop it, or choose another port.`
      return Promise.reject(new NetworkError(message, 'EADDRINUSE'))
    }
    this.#listeners.set(own, accepted)
    return Promise.resolve({
      address: { host: HOST, port: own },
      close: () => {
        this.#listeners.delete(own)
        return Promise.resolve()
      },
    })
  }

  /** Opens a connection. The other side sees `peer` as the identity of the client. */
  connect(
    to: Address,
    { signal, peer }: { signal?: AbortSignalLike; peer?: PeerIdentity } = {},
  ): Promise<MemoryConnection> {
    if (signal?.aborted === true) {
      const message = `Cannot connect to ${to.host}:${to.port} (ABORT_ERR)`
      return Promise.reject(new NetworkError(message, 'ABORT_ERR', { cause: signal.reason }))
    }
    const accepted = this.#listeners.get(to.port)
    if (accepted === undefined) {
      return Promise.reject(
        new NetworkError(`Cannot connect to ${to.host}:${to.port} (ECONNREFUSED)`, 'ECONNREFUSED'),
      )
    }
    const from = { host: HOST, port: this.#nextPort++ }
    const client = new MemoryConnection(this.#clock, () => this.chunkBytes, from, to)
    const server = new MemoryConnection(this.#clock, () => this.chunkBytes, to, from, peer)
    client.attachPeer(server)
    server.attachPeer(client)
    accepted(server)
    return Promise.resolve(client)
  }
}

/** One side of a connection inside the process. */
export class MemoryConnection implements Connection {
  readonly local: Address
  readonly remote: Address
  readonly transport = 'memory'
  readonly isSecure = true
  readonly peer: PeerIdentity | undefined
  readonly #clock: Clock
  readonly #chunkBytes: () => number
  #peer: MemoryConnection | undefined
  #events: ConnectionHandler | undefined
  /** Bytes received and not delivered yet. */
  #incoming: Uint8Array[] = []
  #incomingBytes = 0
  #paused = false
  #scheduled = false
  #open = true
  #ended = false
  #full = false

  constructor(clock: Clock, chunkBytes: () => number, local: Address, remote: Address, peer?: PeerIdentity) {
    this.#clock = clock
    this.#chunkBytes = chunkBytes
    this.local = local
    this.remote = remote
    this.peer = peer
  }

  get bufferedBytes(): number {
    return this.#peer?.pendingBytes ?? 0
  }

  get pendingBytes(): number {
    return this.#incomingBytes
  }

  /** Connects the two sides. Called once by the network. */
  attachPeer(peer: MemoryConnection): void {
    this.#peer = peer
  }

  setHandler(events: ConnectionHandler): void {
    this.#events = events
    this.#schedule()
  }

  write(bytes: Uint8Array): boolean {
    if (!this.#open || this.#ended || bytes.length === 0) return true
    this.#peer!.receive(bytes)
    this.#full = this.bufferedBytes >= HIGH_WATER
    return !this.#full
  }

  receive(bytes: Uint8Array): void {
    if (!this.#open) return
    this.#incoming.push(bytes)
    this.#incomingBytes += bytes.length
    this.#schedule()
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#schedule()
  }

  end(): void {
    if (this.#ended || !this.#open) return
    this.#ended = true
    this.#peer!.receive(new Uint8Array(0))
  }

  destroy(cause?: Error): void {
    if (!this.#open) return
    this.#close(cause)
    const peer = this.#peer!
    this.#clock.immediate(() => peer.reset())
  }

  /** Closes this side and drops received bytes, as a TCP reset does. */
  reset(cause?: Error): void {
    this.#close(cause)
  }

  /** Breaks the connection for both sides. */
  cut(): void {
    const cause = new NetworkError('The connection was cut (ECONNRESET)', 'ECONNRESET')
    this.#close(cause)
    this.#peer!.reset(cause)
  }

  #close(cause?: Error): void {
    if (!this.#open) return
    this.#open = false
    this.#incoming = []
    this.#incomingBytes = 0
    this.#clock.immediate(() => this.#events?.closed(cause))
  }

  #schedule(): void {
    if (this.#scheduled || this.#events === undefined) return
    this.#scheduled = true
    this.#clock.immediate(() => {
      this.#scheduled = false
      this.#deliver()
    })
  }

  #deliver(): void {
    while (this.#open && !this.#paused && this.#incoming.length > 0) {
      const first = this.#incoming[0]!
      if (first.length === 0) {
        this.#incoming.shift()
        if (!this.#ended && this.#events!.ended?.() === true) return
        this.#close()
        return this.#peer!.reset()
      }
      const chunk = first.subarray(0, this.#chunkBytes())
      if (chunk.length === first.length) this.#incoming.shift()
      else this.#incoming[0] = first.subarray(chunk.length)
      this.#incomingBytes -= chunk.length
      // Delivered as a copy that is overwritten afterwards, as sockets reuse their read buffer: this finds handlers that keep a view.
      const lent = new Uint8Array(chunk)
      this.#events!.data(lent)
      lent.fill(0xdb)
    }
    this.#peer!.drained()
  }

  drained(): void {
    if (!this.#full || !this.#open || this.bufferedBytes > 0) return
    this.#full = false
    this.#clock.immediate(() => this.#events?.drain())
  }
}
