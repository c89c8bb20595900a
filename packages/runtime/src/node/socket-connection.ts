import type { OnReadOpts, Socket } from 'node:net'
import {
  NetworkError,
  type AbortSignalLike,
  type Address,
  type Connection,
  type ConnectionHandler,
  type PeerIdentity,
} from '../network.ts'
import { queueClose } from './close-queue.ts'

/** Node tells the stream that a chunk is written when the system has copied it; other run times may keep it beside the stream. */
const isNode = process.versions['bun'] === undefined && process.versions['deno'] === undefined

const NOWHERE: Address = { host: '', port: 0 }

/** A socket, and the connection that it is. */
type Owned = Socket & { [owner]?: SocketConnection }
const owner = Symbol('connection')

export interface SocketConnectionOptions {
  readonly transport: 'tcp' | 'tls'
  readonly peer?: PeerIdentity | undefined
  readonly peerCertificates?: readonly Uint8Array[] | undefined
  /** Where it leads, when that is known without asking the system. */
  readonly remote?: Address | undefined
  /** What it reads comes through `received`, and not as events. */
  readonly hasReadCallback?: boolean
}

/** A socket of the platform as a connection. All share their listeners, since some processes have thousands of them. */
export class SocketConnection implements Connection {
  readonly transport: 'tcp' | 'tls'
  readonly peer: PeerIdentity | undefined
  readonly peerCertificates: readonly Uint8Array[] | undefined
  readonly remote: Address
  readonly #socket: Socket
  readonly #handsOver: boolean
  #events: ConnectionHandler | undefined
  #cause: Error | undefined
  #paused = false
  /** Copies of what was read though the connection is paused: such a socket may read once more. */
  #kept: Uint8Array[] | undefined

  constructor(
    socket: Socket,
    {
      transport,
      peer,
      peerCertificates,
      remote,
      hasReadCallback: handsOver = false,
    }: SocketConnectionOptions,
  ) {
    this.#socket = socket
    this.transport = transport
    this.peer = peer
    this.peerCertificates = peerCertificates
    this.#handsOver = handsOver
    // It is asked for now: the system does not know it any more once the connection is gone.
    this.remote = remote ?? { host: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
    ;(socket as Owned)[owner] = this
    socket.on('error', onError).on('close', onClose).on('drain', onDrain)
  }

  /** For as long as the connection stands. */
  get local(): Address {
    const { localAddress: host, localPort: port } = this.#socket
    return host === undefined || port === undefined ? NOWHERE : { host, port }
  }

  get isSecure(): boolean {
    return this.transport === 'tls'
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength
  }

  get canReuseBuffers(): boolean {
    return this.transport === 'tcp' && isNode && this.#socket.writableLength === 0
  }

  setHandler(events: ConnectionHandler): void {
    const first = this.#events === undefined
    this.#events = events
    if (!first) return
    this.#socket.on('end', onEnd)
    if (this.#handsOver) this.#socket.resume()
    else this.#socket.on('data', onData)
  }

  write(bytes: Uint8Array): boolean {
    return this.#socket.destroyed || this.#socket.write(bytes)
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

  /** Hands over what was kept, and reads on. */
  #handOver(): void {
    while (!this.#paused && !this.#socket.destroyed && this.#kept !== undefined) {
      const chunk = this.#kept.shift()!
      if (this.#kept.length === 0) this.#kept = undefined
      this.#events?.data(chunk)
    }
    if (!this.#paused && this.#kept === undefined) this.#socket.resume()
  }

  end(): void {
    // Not destroyed at once: bytes of the peer that nobody has read would reset the connection and take our last ones with it.
    this.#socket.end()
  }

  destroy(cause?: Error): void {
    this.#cause ??= cause
    this.#socket.destroy()
  }

  // What the socket tells.

  /** False stops the reading. */
  received(chunk: Uint8Array): boolean {
    if (!this.#handsOver || (!this.#paused && this.#kept === undefined)) {
      this.#events?.data(chunk)
      return true
    }
    this.#kept ??= []
    this.#kept.push(chunk.slice())
    return false
  }

  failed(error: Error): void {
    this.#cause ??= error
  }

  drained(): void {
    this.#events?.drain()
  }

  ended(): void {
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

/** As much as the platform reads at once. */
const CHUNK_BYTES = 65_536
let shared: OnReadOpts | undefined

/**
 * Options with which a socket reads into one array that all such sockets share, instead of a new one for each read; or
 * undefined where the platform does not read at the moment at which it tells of it. Whoever hears of a chunk has it for
 * the length of the call only, so nobody can see what another socket reads. The socket must be paused until somebody listens.
 */
export function sharedReadBuffer(): OnReadOpts | undefined {
  // Windows reads ahead into the array, and other run times do not know the option or know it half.
  const { platform, versions } = process
  if (platform === 'win32' || versions['bun'] !== undefined || versions['deno'] !== undefined)
    return undefined
  return (shared ??= { buffer: new Uint8Array(CHUNK_BYTES), callback: onRead })
}

function onRead(this: Owned | void, length: number, bytes: Uint8Array): boolean {
  return (this as Owned)[owner]?.received(bytes.subarray(0, length)) ?? true
}

/** Waits until a socket that connects tells so with `event`. Rejects with a `NetworkError` when it fails or is aborted. */
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

/** A socket that connects. */
type Opens = Socket & { [opening]?: ConnectAttempt | undefined }
const opening = Symbol('opening')

/** A socket until it stands or has failed. All share their listeners on it. */
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
