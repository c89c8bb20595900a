import { lookup } from 'node:dns/promises'
import { connect as connectSocket, createServer, isIP, type Server, type Socket } from 'node:net'
import {
  NetworkError,
  type AbortSignalLike,
  type Address,
  type Connection,
  type Listener,
  type Network,
} from '../network.ts'
import { anyAddress } from './any-address.ts'
import { connected, sharedReadBuffer, SocketConnection } from './socket-connection.ts'

/** TCP of the operating system, without delay of small writes. */
export const nodeNetwork: Network = {
  listen: (at, accepted, refused) =>
    listenForSockets(at, (socket) => accepted(new SocketConnection(socket, { transport: 'tcp' })), refused),
  connect,
  resolve: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
}

export type ListenAt = Parameters<Network['listen']>[0]

/** Accepts sockets, for connections or for a protocol on top of TCP. */
export function listenForSockets(
  at: ListenAt,
  accepted: (socket: Socket) => void,
  refused: (error: Error) => void = () => {},
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const server = createServer(
      { noDelay: true, allowHalfOpen: true, keepAlive: at.keepAlive ?? false },
      accepted,
    )
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, at)))
    server.listen(
      {
        port: at.port,
        ...(at.host === undefined ? {} : { host: at.host }),
        ...(at.backlog ? { backlog: at.backlog } : {}),
      },
      () => {
        // From here on an error concerns a connection that could not be accepted (no file descriptors, say), not the port.
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
    // The callback of `close` waits for connections, but the port is free one turn later.
    close: () =>
      new Promise((resolve) => {
        server.close()
        setImmediate(resolve)
      }),
  }
}

function listenError(
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

async function connect(to: Address, { signal }: { signal?: AbortSignalLike } = {}): Promise<Connection> {
  const { host, port } = to
  const onread = sharedReadBuffer()
  const options = { host, port, noDelay: true, lookup: anyAddress }
  const socket = connectSocket(onread === undefined ? options : { ...options, onread })
  if (onread !== undefined) socket.pause()
  await connected(socket, 'connect', to, signal)
  return new SocketConnection(socket, {
    transport: 'tcp',
    hasReadCallback: onread !== undefined,
    remote: isIP(host) === 0 ? undefined : to,
  })
}
