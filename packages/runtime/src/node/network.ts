import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net'
import {
  NetworkError,
  type Address,
  type Connection,
  type ConnectionEvents,
  type Listener,
  type Network,
} from '../network.ts'

/** TCP of the operating system, without delay of small writes. */
export const nodeNetwork: Network = { listen, connect }

function listen(
  at: { host?: string; port: number; backlog?: number; keepAlive?: boolean },
  accepted: (connection: Connection) => void,
  refused: (error: Error) => void = () => {},
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const server = createServer(
      { noDelay: true, allowHalfOpen: true, keepAlive: at.keepAlive ?? false },
      (socket) => accepted(new TcpConnection(socket)),
    )
    server.once('error', (error: NodeJS.ErrnoException) => reject(explained(error, at)))
    server.listen(
      {
        port: at.port,
        ...(at.host === undefined ? {} : { host: at.host }),
        ...(at.backlog ? { backlog: at.backlog } : {}),
      },
      () => {
        // From here on an error concerns one connection that could not be accepted (no descriptors, say), not the port.
        server.removeAllListeners('error').on('error', refused)
        resolve(listenerOf(server))
      },
    )
  })
}

function listenerOf(server: Server): Listener {
  const address = server.address()
  if (address === null || typeof address === 'string')
    throw new TypeError('Expected a TCP server with an address')
  return {
    address: { host: address.address, port: address.port },
    // The callback of `close` waits for connections, which are not the listener's: the port is free a turn later.
    close: () =>
      new Promise((resolve) => {
        server.close()
        setImmediate(resolve)
      }),
  }
}

function explained(
  error: NodeJS.ErrnoException,
  { host = '*', port }: { host?: string; port: number },
): NetworkError {
  const code = error.code ?? 'UNKNOWN'
  const advice: Readonly<Record<string, string>> = {
    EADDRINUSE: 'Another program listens there. Stop it, or choose another port.',
    EACCES: 'This user may not use the port. Choose one above 1023.',
    EADDRNOTAVAIL: 'No network interface of this machine has that address.',
    ENOTFOUND: 'The name is not known.',
  }
  return new NetworkError(
    `Cannot listen on ${host}:${port} (${code}). ${advice[code] ?? error.message}`,
    code,
    { cause: error },
  )
}

function connect(to: Address, { signal }: { signal?: AbortSignal } = {}): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket({
      host: to.host,
      port: to.port,
      noDelay: true,
      ...(signal ? { signal } : {}),
    })
    const failed = (error: NodeJS.ErrnoException): void => {
      const code = error.code ?? error.name
      reject(new NetworkError(`Cannot connect to ${to.host}:${to.port} (${code})`, code, { cause: error }))
    }
    socket.once('error', failed)
    socket.once('connect', () => {
      socket.removeListener('error', failed)
      resolve(new TcpConnection(socket))
    })
  })
}

class TcpConnection implements Connection {
  readonly remote: Address
  readonly local: Address
  readonly #socket: Socket
  #events: ConnectionEvents | undefined
  #cause: Error | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    this.remote = { host: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
    this.local = { host: socket.localAddress ?? '', port: socket.localPort ?? 0 }
    socket.on('error', (error) => (this.#cause ??= error))
    socket.on('close', () => this.#events?.closed(this.#cause))
    socket.on('drain', () => this.#events?.drain())
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
