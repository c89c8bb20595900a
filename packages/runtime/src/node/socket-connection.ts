import type { OnReadOpts, Socket } from 'node:net'
import {
  NetworkError,
  type AbortSignalLike,
  type Address,
  type Connection,
  type ConnectionHandler,
  type PeerIdentity,
  type TlsParameters,
} from '../network.ts'
import { closeSoon, queueClose } from './close-queue.ts'
import { tlsParametersOf } from './tls-parameters.ts'
import { heldBytesOf } from './wrapped-socket.ts'

/** Node reports a chunk as written when the system has copied it; Bun and Deno may still hold it then. */
const isNode = process.versions['bun'] === undefined && process.versions['deno'] === undefined

const NO_ADDRESS: Address = { host: '', port: 0 }

/** A socket with its connection. */
type Owned = Socket & { [owner]?: SocketConnection }
const owner = Symbol('connection')

export interface SocketConnectionOptions {
  readonly transport: 'tcp' | 'tls'
  readonly peer?: PeerIdentity | undefined
  readonly peerCertificates?: readonly Uint8Array[] | undefined
  /** The address of the peer, when it is known without a system call. */
  readonly remote?: Address | undefined
  /** Returns the error to report for one of the socket. */
  readonly explain?: ((error: Error) => Error) | undefined
  /** Whether the socket passes bytes to `received` through its `onread` option instead of `data` events. */
  readonly hasReadCallback?: boolean
}

/** A connection over a socket. All connections share their listener functions, since a process may have thousands. */
export class SocketConnection implements Connection {
  readonly transport: 'tcp' | 'tls'
  readonly peer: PeerIdentity | undefined
  readonly peerCertificates: readonly Uint8Array[] | undefined
  readonly remote: Address
  readonly #socket: Socket
  readonly #hasReadCallback: boolean
  readonly #explain: ((error: Error) => Error) | undefined
  #events: ConnectionHandler | undefined
  #cause: Error | undefined
  #paused = false
  #isDestroyed = false
  /** Copies of bytes read while paused: a socket may read once more after `pause`. */
  #kept: Uint8Array[] | undefined

  constructor(
    socket: Socket,
    { transport, peer, peerCertificates, remote, explain, hasReadCallback = false }: SocketConnectionOptions,
  ) {
    this.#socket = socket
    this.transport = transport
    this.peer = peer
    this.peerCertificates = peerCertificates
    this.#hasReadCallback = hasReadCallback
    this.#explain = explain
    // Read now: the system no longer knows the address once the connection is closed.
    this.remote = remote ?? { host: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
    ;(socket as Owned)[owner] = this
    socket.on('error', onError).on('close', onClose).on('drain', onDrain)
  }

  /** The local address, while the connection is open. */
  get local(): Address {
    const { localAddress: host, localPort: port } = this.#socket
    return host === undefined || port === undefined ? NO_ADDRESS : { host, port }
  }

  get isSecure(): boolean {
    return this.transport === 'tls'
  }

  get tls(): TlsParameters | undefined {
    return tlsParametersOf(this.#socket)
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength
  }

  get heldBytes(): number {
    const kept = this.#kept
    return kept === undefined ? heldBytesOf(this.#socket) : kept.reduce((sum, { length }) => sum + length, 0)
  }

  get canReuseBuffers(): boolean {
    return this.transport === 'tcp' && isNode && this.#socket.writableLength === 0
  }

  setHandler(events: ConnectionHandler): void {
    const first = this.#events === undefined
    this.#events = events
    if (!first) return
    this.#socket.on('end', onEnd)
    if (this.#hasReadCallback) this.#socket.resume()
    else this.#socket.on('data', onData)
  }

  write(bytes: Uint8Array): boolean {
    return this.#isDestroyed || this.#socket.destroyed || this.#socket.write(bytes)
  }

  pause(): void {
    this.#paused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#paused = false
    if (this.#kept === undefined) this.#socket.resume()
    else setImmediate(() => this.#handOver())
  }

  /** Delivers the kept bytes, then resumes reading. */
  #handOver(): void {
    while (!this.#paused && !this.#isDestroyed && !this.#socket.destroyed && this.#kept !== undefined) {
      const chunk = this.#kept.shift()!
      if (this.#kept.length === 0) this.#kept = undefined
      this.#events?.data(chunk)
    }
    if (!this.#paused && this.#kept === undefined) this.#socket.resume()
  }

  end(): void {
    // Not destroyed at once: unread bytes of the peer would cause a reset, which drops the last bytes sent.
    this.#socket.end()
  }

  destroy(cause?: Error): void {
    if (this.#isDestroyed) return
    this.#isDestroyed = true
    this.#cause ??= cause
    closeSoon(this.#socket)
  }

  // Events of the socket.

  /** Delivers bytes. Returns false to stop reading. */
  received(chunk: Uint8Array): boolean {
    if (this.#isDestroyed) return false
    if (!this.#hasReadCallback || (!this.#paused && this.#kept === undefined)) {
      this.#events?.data(chunk)
      return true
    }
    this.#kept ??= []
    this.#kept.push(chunk.slice())
    return false
  }

  failed(error: Error): void {
    this.#cause ??= this.#explain?.(error) ?? error
  }

  drained(): void {
    if (!this.#isDestroyed) this.#events?.drain()
  }

  ended(): void {
    if (this.#isDestroyed) return
    if (this.#events?.ended?.() !== true) queueClose(this.#socket)
  }

  closed(): void {
    this.#events?.closed(this.#cause)
  }
}

function onData(this: Owned, chunk: Uint8Array): void {
  this[owner]!.received(chunk)
}

function onError(this: Owned, error: Error): void {
  this[owner]!.failed(error)
}

function onDrain(this: Owned): void {
  this[owner]!.drained()
}

function onEnd(this: Owned): void {
  this[owner]!.ended()
}

function onClose(this: Owned): void {
  this[owner]!.closed()
}

/** Most bytes that Node reads at once. */
const CHUNK_BYTES = 65_536
let shared: OnReadOpts | undefined

/**
 * Returns socket options to read into one array shared by all sockets, instead of a new one per read; undefined where the platform
 * may read ahead. A chunk is valid during the call of the handler only, so sharing is safe. The socket must be paused until a
 * handler is set.
 */
export function sharedReadBuffer(): OnReadOpts | undefined {
  // Windows reads ahead into the array; Bun and Deno do not support the option, or only in part.
  const { platform, versions } = process
  if (platform === 'win32' || versions['bun'] !== undefined || versions['deno'] !== undefined)
    return undefined
  return (shared ??= { buffer: new Uint8Array(CHUNK_BYTES), callback: onRead })
}

function onRead(this: Owned | void, length: number, bytes: Uint8Array): boolean {
  return (this as Owned)[owner]?.received(bytes.subarray(0, length)) ?? true
}

/** Resolves when a socket emits `event`. Rejects with a `NetworkError` when it fails or is aborted. */
export function connected<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  to: Address,
  signal: AbortSignalLike | undefined,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const one = new ConnectAttempt(socket, event, to, signal, resolve as (socket: Socket) => void, reject)
    if (signal?.aborted === true) one.aborted()
    else signal?.addEventListener('abort', one.aborted, { once: true })
  })
}

/** A socket with its connect attempt. */
type Opens = Socket & { [opening]?: ConnectAttempt | undefined }
const opening = Symbol('opening')

/** A socket until it is connected or has failed. All attempts share their listener functions. */
class ConnectAttempt {
  readonly #socket: Opens
  readonly #event: 'connect' | 'secureConnect'
  readonly #to: Address
  readonly #signal: AbortSignalLike | undefined
  readonly #resolve: (socket: Socket) => void
  readonly #reject: (error: NetworkError) => void

  constructor(
    socket: Opens,
    event: 'connect' | 'secureConnect',
    to: Address,
    signal: AbortSignalLike | undefined,
    resolve: (socket: Socket) => void,
    reject: (error: NetworkError) => void,
  ) {
    this.#socket = socket
    this.#event = event
    this.#to = to
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
    socket[opening] = this
    socket.on('error', onRefused).on(event, onOpen)
  }

  done(): void {
    this.#settle()
    this.#resolve(this.#socket)
  }

  failed(error: NodeJS.ErrnoException): void {
    this.#settle()
    const { host, port } = this.#to
    const code = error.code ?? error.name
    const detail = /^(E[A-Z]+|ABORT_ERR)$/.test(code) ? '' : `: ${error.message}`
    this.#reject(
      new NetworkError(`Cannot connect to ${host}:${port} (${code})${detail}`, code, { cause: error }),
    )
  }

  readonly aborted = (): void => {
    this.#socket.on('error', () => {}).destroy()
    this.failed(
      Object.assign(new Error('It was aborted', { cause: this.#signal!.reason }), { code: 'ABORT_ERR' }),
    )
  }

  #settle(): void {
    this.#socket[opening] = undefined
    this.#socket.removeListener('error', onRefused).removeListener(this.#event, onOpen)
    this.#signal?.removeEventListener('abort', this.aborted)
  }
}

function onOpen(this: Opens): void {
  this[opening]?.done()
}

function onRefused(this: Opens, error: Error): void {
  this[opening]?.failed(error)
}
