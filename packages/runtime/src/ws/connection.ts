import type { WebSocket } from 'ws'
import type { Cancel, Clock } from '../clock.ts'
import {
  NetworkError,
  type Address,
  type Connection,
  type ConnectionHandler,
  type PeerIdentity,
  type TlsParameters,
} from '../network.ts'
import { PartialMessage } from './partial-message.ts'

const HIGH_WATER = 64 * 1024
/** Most bytes of one sent message; a peer may refuse longer ones. */
const MESSAGE_BYTES = 64 * 1024
/** Messages that are received while reading is paused are packed into arrays of at least so many bytes. */
const KEPT_BYTES = 4096
/** Close codes of RFC 6455. */
const NORMAL = 1000
const NO_STATUS = 1005
const GOING_AWAY = 1001

/** What a WebSocket reads. */
export interface ChunkSource {
  /** Bytes received that were not passed on. */
  readonly heldBytes: number
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown
}

export interface WebSocketConnectionOptions {
  readonly remote: Address
  readonly local: Address
  readonly isSecure: boolean
  readonly peer: PeerIdentity | undefined
  readonly tls?: TlsParameters | undefined
  readonly clock: Clock
  /** 0 sends no pings. */
  readonly pingIntervalMs: number
  /** The socket, by whose chunks incomplete messages are counted and pings answered. */
  readonly socket?: ChunkSource | undefined
}

/** A byte stream over a WebSocket. It cannot be half open: when one side ends, both end. */
export class WebSocketConnection implements Connection {
  readonly remote: Address
  readonly local: Address
  readonly isSecure: boolean
  readonly peer: PeerIdentity | undefined
  readonly tls: TlsParameters | undefined
  readonly transport = 'webSocket'
  readonly #webSocket: WebSocket
  readonly #clock: Clock
  #events: ConnectionHandler | undefined
  #cause: Error | undefined
  #full = false
  #paused = false
  /** Whether the WebSocket is closed; `closed` is called once what was received before is delivered. */
  #hasEnded = false
  #closed = false
  #isDestroyed = false
  readonly #partial = new PartialMessage()
  /** Whether the peer has broken the protocol: what it had sent of a message is held until it leaves, and what comes then is dropped. */
  #hasFailed = false
  /** With it, frames are followed by `#received`, once for all of a chunk. */
  readonly #socket: ChunkSource | undefined
  /** The last ping of a chunk, which is answered at its end. */
  #ping: Buffer | undefined
  /** The bytes of messages received while paused: those in the last bytes read before the pause. The last array may have room. */
  #queued: Uint8Array[] = []
  #queuedInLast = 0
  /** Whether anything was received since the last ping. */
  #isAlive = true
  #cancelPing: Cancel = () => {}

  constructor(
    webSocket: WebSocket,
    { remote, local, isSecure, peer, tls, clock, pingIntervalMs, socket }: WebSocketConnectionOptions,
  ) {
    this.#webSocket = webSocket
    this.#clock = clock
    this.remote = remote
    this.local = local
    this.isSecure = isSecure
    this.peer = peer
    this.tls = tls
    webSocket.binaryType = 'nodebuffer'
    webSocket.on('message', (data: Buffer, isBinary) => this.#message(data, isBinary))
    webSocket.on('error', (error) => {
      this.#cause ??= error
      this.#hasFailed = true
    })
    webSocket.on('close', (code) => this.#closedBy(code))
    webSocket.on('ping', (data: Buffer) => this.#pinged(data))
    webSocket.on('pong', () => (this.#isAlive = true))
    this.#socket = socket
    // Behind the listener of the WebSocket, which delivers the messages that the chunk completes.
    socket?.on('data', (chunk) => this.#received(chunk))
    if (pingIntervalMs > 0) this.#pingAfter(pingIntervalMs)
  }

  get bufferedBytes(): number {
    return this.#webSocket.bufferedAmount
  }

  get heldBytes(): number {
    const received = this.#partial.byteSize + (this.#socket?.heldBytes ?? 0)
    return this.#queued.reduce((sum, { length }) => sum + length, received)
  }

  setHandler(events: ConnectionHandler): void {
    this.#events = events
    this.#deliverSoon()
  }

  write(bytes: Uint8Array): boolean {
    if (this.#webSocket.readyState !== this.#webSocket.OPEN || bytes.length === 0) return true
    for (let at = 0; at < bytes.length; at += MESSAGE_BYTES)
      this.#webSocket.send(bytes.subarray(at, at + MESSAGE_BYTES), () => this.#sent())
    this.#full ||= this.bufferedBytes >= HIGH_WATER
    return !this.#full
  }

  pause(): void {
    this.#paused = true
    this.#webSocket.pause()
  }

  resume(): void {
    this.#paused = false
    this.#isAlive = true
    if (this.#queued.length === 0) this.#webSocket.resume()
    else this.#deliverSoon()
  }

  end(): void {
    if (this.#webSocket.readyState === this.#webSocket.OPEN) this.#webSocket.close(NORMAL)
  }

  destroy(cause?: Error): void {
    if (this.#isDestroyed) return
    this.#isDestroyed = true
    this.#cause ??= cause
    this.#queued = []
    this.#webSocket.terminate()
    if (this.#hasEnded) this.#clock.immediate(() => this.#deliver())
  }

  #received(chunk: Uint8Array): void {
    const ping = this.#ping
    this.#ping = undefined
    if (ping !== undefined) this.#answer(ping)
    if (this.#hasFailed) return
    this.#partial.push(chunk)
    if (this.#partial.byteSize > 0 && !this.#hasEnded) this.#events?.held?.()
  }

  /** A ping has arrived. Of those in one chunk the last is answered, as RFC 6455 allows: a chunk may have a thousand. */
  #pinged(data: Buffer): void {
    if (this.#socket !== undefined) this.#ping = data
    else this.#answer(data)
  }

  /** Answers a ping, unless the peer does not read the answers to earlier ones. */
  #answer(data: Buffer): void {
    if (this.bufferedBytes < HIGH_WATER && this.#webSocket.readyState === this.#webSocket.OPEN)
      this.#webSocket.pong(data)
  }

  #message(data: Buffer, isBinary: boolean): void {
    if (this.#isDestroyed) return
    this.#isAlive = true
    if (!isBinary) {
      this.#cause ??= new NetworkError('The peer sent text; only binary messages are read', 'EPROTO')
      return this.#webSocket.close(1003, 'binary messages only')
    }
    if (this.#events === undefined || this.#paused || this.#queued.length > 0) {
      this.#keep(data)
      // The handler is set before the turn ends, so the queue holds the messages of one read at most.
      if (this.#events === undefined) this.#webSocket.pause()
    } else if (data.length > 0) this.#events.data(data)
  }

  /** Packs a message behind those that wait: a peer can send ten thousand tiny ones in one chunk. */
  #keep(data: Buffer): void {
    const last = this.#queued.at(-1)
    if (last !== undefined && last.length - this.#queuedInLast >= data.length) {
      last.set(data, this.#queuedInLast)
      this.#queuedInLast += data.length
      return
    }
    if (last !== undefined) this.#queued[this.#queued.length - 1] = last.subarray(0, this.#queuedInLast)
    const next = new Uint8Array(Math.max(KEPT_BYTES, data.length))
    next.set(data)
    this.#queued.push(next)
    this.#queuedInLast = data.length
  }

  #deliverSoon(): void {
    if (this.#queued.length > 0) this.#clock.immediate(() => this.#deliver())
  }

  #deliver(): void {
    while (!this.#paused && !this.#isDestroyed && this.#queued.length > 0) {
      const bytes = this.#queued.shift()!
      const data = this.#queued.length === 0 ? bytes.subarray(0, this.#queuedInLast) : bytes
      if (data.length > 0) this.#events!.data(data)
    }
    if (this.#queued.length > 0 || this.#closed) return
    if (this.#hasEnded) this.#close()
    else if (!this.#paused) this.#webSocket.resume()
  }

  #sent(): void {
    if (this.#full && !this.#hasEnded && this.bufferedBytes === 0) this.#drained()
  }

  #drained(): void {
    this.#full = false
    this.#events?.drain()
  }

  #closedBy(code: number): void {
    this.#cancelPing()
    const isOrderly = this.#isDestroyed || [NORMAL, NO_STATUS, GOING_AWAY].includes(code)
    if (!isOrderly) this.#cause ??= new NetworkError(`The WebSocket broke (close code ${code})`, 'ECONNRESET')
    this.#hasEnded = true
    // A reader that has paused until its output is sent waits for nothing any more.
    if (this.#full && this.#queued.length > 0) this.#drained()
    this.#deliver()
  }

  #close(): void {
    this.#closed = true
    this.#events?.closed(this.#cause)
  }

  #pingAfter(ms: number): void {
    this.#cancelPing = this.#clock.after(ms, 'ping of a WebSocket', () => {
      // While reading is paused, the pong of the peer is not read.
      if (!this.#isAlive && !this.#paused)
        return this.destroy(new NetworkError(`The peer left a ping unanswered for ${ms} ms`, 'ETIMEDOUT'))
      this.#isAlive = false
      if (this.#webSocket.readyState === this.#webSocket.OPEN) this.#webSocket.ping()
      this.#pingAfter(ms)
    })
  }
}
