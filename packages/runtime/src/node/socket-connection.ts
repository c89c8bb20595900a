import type { Socket } from 'node:net'
import { NetworkError, type Address, type Connection, type ConnectionEvents, type Peer } from '../network.ts'

/** A socket of the platform as a connection. */
export class SocketConnection implements Connection {
  readonly remote: Address
  readonly local: Address
  readonly transport: 'tcp' | 'tls'
  readonly peer: Peer | undefined
  readonly #socket: Socket
  #events: ConnectionEvents | undefined
  #cause: Error | undefined

  constructor(socket: Socket, transport: 'tcp' | 'tls', peer?: Peer) {
    this.#socket = socket
    this.transport = transport
    this.peer = peer
    this.remote = { host: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
    this.local = { host: socket.localAddress ?? '', port: socket.localPort ?? 0 }
    socket.on('error', (error) => (this.#cause ??= error))
    socket.on('close', () => this.#events?.closed(this.#cause))
    socket.on('drain', () => this.#events?.drain())
  }

  get secure(): boolean {
    return this.transport === 'tls'
  }

  get buffered(): number {
    return this.#socket.writableLength
  }

  listen(events: ConnectionEvents): void {
    const first = this.#events === undefined
    this.#events = events
    if (!first) return
    this.#socket.on('data', (chunk) => this.#events?.data(chunk))
    this.#socket.on('end', () => {
      if (this.#events?.ended?.() !== true) this.#socket.destroy()
    })
  }

  write(bytes: Uint8Array): boolean {
    return this.#socket.destroyed ? true : this.#socket.write(bytes)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  end(): void {
    // Not destroyed at once: bytes of the peer that nobody has read would reset the connection and take our last ones with it.
    this.#socket.end()
  }

  destroy(cause?: Error): void {
    this.#cause ??= cause
    this.#socket.destroy()
  }
}

/** Waits until a socket that connects tells so with `event`. Rejects with a `NetworkError` when it fails or is aborted. */
export function opened<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  to: Address,
  signal: AbortSignal | undefined,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      socket.removeListener('error', failed)
      signal?.removeEventListener('abort', aborted)
    }
    const failed = (error: NodeJS.ErrnoException): void => {
      settle()
      const code = error.code ?? error.name
      const detail = /^(E[A-Z]+|ABORT_ERR)$/.test(code) ? '' : `: ${error.message}`
      reject(
        new NetworkError(`Cannot connect to ${to.host}:${to.port} (${code})${detail}`, code, {
          cause: error,
        }),
      )
    }
    const aborted = (): void => {
      socket.on('error', () => {}).destroy()
      failed(Object.assign(new Error('It was aborted', { cause: signal!.reason }), { code: 'ABORT_ERR' }))
    }
    socket.once('error', failed)
    socket.once(event, () => {
      settle()
      resolve(socket)
    })
    if (signal?.aborted === true) aborted()
    else signal?.addEventListener('abort', aborted, { once: true })
  })
}
