import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { NetworkError, type Listener, type PeerIdentity, type TlsParameters } from '../network.ts'
import { listenForSockets, type ListenAt } from './network.ts'
import { openPaced, type PacedSocket } from './paced-socket.ts'
import { PendingSockets, remoteName } from './pending-sockets.ts'
import { tlsParametersOf } from './tls-parameters.ts'
import type { NodeTlsNetwork } from './tls.ts'

export type { Duplex }

/** An HTTP request to upgrade to another protocol, with its socket. */
export interface Upgrade {
  readonly request: IncomingMessage
  /** Its `heldBytes` were received and not passed on. */
  readonly socket: Duplex & { readonly heldBytes: number }
  /** Bytes received after the request. */
  readonly head: Buffer
  readonly isSecure: boolean
  readonly peer: PeerIdentity | undefined
  readonly tls?: TlsParameters | undefined
}

/** Listens for HTTP upgrade requests. */
export interface UpgradeListener {
  listen(
    at: ListenAt,
    upgrade: (upgrade: Upgrade) => void,
    refused?: (error: Error) => void,
  ): Promise<Listener>
}

/** Creates a listener of upgrade requests over HTTP, or over HTTPS when `tls` is given. Other requests get status 426. */
export function httpUpgrades({
  tls,
  limit = 250,
  timeoutMs = 10_000,
}: { tls?: NodeTlsNetwork | undefined; limit?: number; timeoutMs?: number } = {}): UpgradeListener {
  return {
    listen(at, upgrade, refused = () => {}) {
      const opening = new PendingSockets('an HTTP request', { limit, timeoutMs })
      const peers = new WeakMap<Socket, PeerIdentity>()
      const server = createServer((request, response) => {
        refused(
          new NetworkError(
            `${remoteName(request.socket)} sent a plain HTTP request: this port speaks WebSocket only`,
            'EPROTO',
          ),
        )
        response.writeHead(426, { 'content-type': 'text/plain', connection: 'close' })
        response.end('This port speaks WebSocket only.\n')
      })
      server.on(
        'clientError',
        (error: NodeJS.ErrnoException & { rawPacket?: Uint8Array }, socket: Socket) => {
          // A client that has left is not refused.
          if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy()
          const what = error.rawPacket === undefined ? error.message : nameOf(error.rawPacket)
          const reason = `${remoteName(socket)} sent ${what}: this port speaks WebSocket only`
          refused(new NetworkError(reason, 'EPROTO', { cause: error }))
          return socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
        },
      )
      server.on('upgrade', (request: IncomingMessage, socket: PacedSocket, head: Buffer) => {
        const { source } = socket
        // From here on it has frames.
        socket.hasRequests = false
        opening.ready(source)
        source.setNoDelay(true)
        upgrade({
          request,
          socket,
          head,
          isSecure: tls !== undefined,
          peer: peers.get(source),
          tls: tlsParametersOf(source),
        })
      })
      const take = (socket: Socket): void => {
        if (opening.admit(socket, refused)) openPaced(socket, (paced) => server.emit('connection', paced))
      }
      if (tls === undefined) return listenForSockets(at, take, refused)
      return tls.listenForSockets(
        at,
        (socket, peer) => {
          if (peer !== undefined) peers.set(socket, peer)
          take(socket)
        },
        refused,
      )
    },
  }
}

/** Names the protocol of bytes that are not HTTP. A client of ZooKeeper begins with a length below 16 MiB. */
function nameOf(bytes: Uint8Array): string {
  if (bytes[0] === 0x16 && bytes[1] === 3) return 'a TLS handshake'
  return bytes[0] === 0 ? 'the bytes of a ZooKeeper client without WebSocket' : 'bytes that are not HTTP'
}
