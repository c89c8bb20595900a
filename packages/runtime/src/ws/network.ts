import { WebSocket, WebSocketServer } from 'ws'
import type { Clock } from '../clock.ts'
import {
  NetworkError,
  shownUrl,
  type AbortSignalLike,
  type Address,
  type Connection,
  type Listener,
  type Network,
} from '../network.ts'
import type { Duplex, Upgrade, UpgradeListener } from '../node/http.ts'
import { pacedConnections } from '../node/paced-connections.ts'
import type { WebSocketListenOptions } from '../tls.ts'
import { CUT_OFF, tlsFailureOf } from '../tls-faults.ts'
import { WebSocketConnection, type ChunkSource } from './connection.ts'

export interface WebSocketNetworkOptions extends WebSocketListenOptions {
  /** Clock of the pings. */
  readonly clock: Clock
  /** Source of upgrade requests: `httpUpgrades()` of `@zabra/runtime/node`. Needed by `listen` only. */
  readonly upgrades?: UpgradeListener | undefined
  /**
   * Options that `connect` passes to `ws`: `ca`, `cert` and `key` for wss, `headers`, `origin`. A function is called for each
   * connection.
   */
  readonly client?: (object | (() => Promise<object>)) | undefined
}

type ListenAt = Parameters<Network['listen']>[0]

const MAX_MESSAGE_BYTES = 2 ** 20
/** Most fragments of a message: one for so many bytes of the longest message, and some in any case. */
const BYTES_PER_FRAGMENT = 4096
const MIN_FRAGMENTS = 256

/** Returns a network of byte streams over binary WebSocket messages; message boundaries have no meaning. */
export function webSocketNetwork(options: WebSocketNetworkOptions): Network {
  return new WebSocketNetwork(options)
}

class WebSocketNetwork implements Network {
  readonly #options: WebSocketNetworkOptions

  constructor(options: WebSocketNetworkOptions) {
    this.#options = options
  }

  async listen(
    at: ListenAt,
    accepted: (connection: Connection) => void,
    refused: (error: Error) => void = () => {},
  ): Promise<Listener> {
    const { upgrades, maxMessageBytes = MAX_MESSAGE_BYTES, clock, pingIntervalMs = 30_000 } = this.#options
    if (upgrades === undefined)
      throw new NetworkError('Cannot listen for WebSockets: no source of upgrades was given.', 'ENOTSUP')
    const server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      autoPong: false,
      maxPayload: maxMessageBytes,
      maxFragments: Math.max(MIN_FRAGMENTS, Math.ceil(maxMessageBytes / BYTES_PER_FRAGMENT)),
    })
    server.on('wsClientError', (error, socket) => {
      refused(new NetworkError(`A WebSocket was refused: ${error.message}`, 'EPROTO', { cause: error }))
      respond(socket, '400 Bad Request')
    })
    return upgrades.listen(
      at,
      (upgrade) => {
        const { request, socket, head, isSecure, peer, tls } = upgrade
        const reason = this.#refusalOf(upgrade)
        if (reason !== undefined) {
          refused(new NetworkError(`A WebSocket was refused: ${reason.text}`, 'EACCES'))
          respond(socket, reason.status)
          return
        }
        const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = request.socket
        server.handleUpgrade(request, socket, head, (webSocket) => {
          const connection = new WebSocketConnection(webSocket, {
            remote: { host: remoteAddress, port: remotePort },
            local: { host: localAddress, port: localPort },
            isSecure,
            peer,
            tls,
            clock,
            pingIntervalMs,
            socket,
          })
          accepted(connection)
        })
      },
      refused,
    )
  }

  async connect(to: Address, { signal }: { signal?: AbortSignalLike } = {}): Promise<Connection> {
    const {
      client: given,
      clock,
      pingIntervalMs = 30_000,
      maxMessageBytes = MAX_MESSAGE_BYTES,
    } = this.#options
    const client = typeof given === 'function' ? await given() : given
    const url = to.url ?? `ws://${to.host.includes(':') ? `[${to.host}]` : to.host}:${to.port}/`
    return new Promise((resolve, reject) => {
      const failed = (code: string, cause: unknown): void => {
        signal?.removeEventListener('abort', aborted)
        const tlsFailure = cause instanceof Error ? tlsFailureOf(cause) : undefined
        const isCutOff = code === 'ECONNRESET' && url.startsWith('wss:')
        const reason = tlsFailure?.reason ?? (isCutOff ? CUT_OFF : undefined)
        const known = tlsFailure?.code ?? code
        const message = `Cannot connect to ${shownUrl(url)} (${known})${reason === undefined ? '' : `: ${reason}`}`
        reject(new NetworkError(message, known, { cause, tlsFailure }))
      }
      const aborted = (): void => {
        webSocket.removeAllListeners('error').on('error', () => {})
        webSocket.terminate()
        failed('ABORT_ERR', signal!.reason)
      }
      const webSocket = new WebSocket(url, {
        perMessageDeflate: false,
        autoPong: false,
        maxPayload: Math.max(maxMessageBytes, MAX_MESSAGE_BYTES),
        ...pacedConnections(url.startsWith('wss:')),
        ...client,
      })
      webSocket.once('error', (error: Error & { code?: string }) =>
        failed(error.code ?? error.message, error),
      )
      // Bun has a `ws` of its own, without a socket.
      let socket: ClientSocket = {}
      webSocket.once('upgrade', (response: { socket?: typeof socket } | undefined) => {
        socket = response?.socket ?? {}
      })
      webSocket.once('open', () => {
        signal?.removeEventListener('abort', aborted)
        webSocket.removeAllListeners('error')
        const { remotePort = to.port, localAddress = '', localPort = 0 } = socket
        const connection = new WebSocketConnection(webSocket, {
          remote: { host: to.host, port: remotePort },
          local: { host: localAddress, port: localPort },
          isSecure: url.startsWith('wss:'),
          peer: undefined,
          clock,
          pingIntervalMs,
          socket: isChunkSource(socket) ? socket : undefined,
        })
        resolve(connection)
      })
      if (signal?.aborted === true) aborted()
      else signal?.addEventListener('abort', aborted, { once: true })
    })
  }

  #refusalOf({ request }: Upgrade): { readonly status: string; readonly text: string } | undefined {
    const { path, origins = [], hostName } = this.#options
    const [asked = ''] = (request.url ?? '').split('?', 1)
    if (path !== undefined && asked !== path)
      return {
        status: '404 Not Found',
        text: `it asks for ${JSON.stringify(asked.slice(0, 200))}, and only ${path} is served`,
      }
    const { origin, host } = request.headers
    if (origin === undefined || isAllowed(origin, host, origins, hostName)) return undefined
    return {
      status: '403 Forbidden',
      text: `it comes from a page of ${JSON.stringify(origin.slice(0, 200))}, to ${JSON.stringify((host ?? '').slice(0, 200))}, which is not an origin that may connect. List it in webSocketOrigins to allow it`,
    }
  }
}

/** The socket of a client. */
interface ClientSocket {
  readonly remotePort?: number
  readonly localAddress?: string
  readonly localPort?: number
}

const isChunkSource = (socket: object): socket is ChunkSource => 'heldBytes' in socket

/** Answers a refused upgrade request, and closes the socket. */
function respond(socket: Duplex, status: string): void {
  socket.on('error', () => {})
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}

/**
 * Without origins, the page must be one of the host that it connects to, and that host must not be any name: the owner of a name can
 * point it at the address of this server, and then serves pages of the same host (DNS rebinding).
 */
function isAllowed(
  origin: string,
  host: string | undefined,
  origins: readonly string[],
  hostName: string | undefined,
): boolean {
  if (origins.length > 0)
    return origins.some((one) => one === '*' || one.replace(/\/$/, '').toLowerCase() === origin.toLowerCase())
  const page = hostNameOf(origin)
  if (page === undefined || page !== hostNameOf(`http://${host}`)) return false
  // Parsed by URL, a host that ends in a number is an IPv4 address, and one in brackets an IPv6 address.
  return page === 'localhost' || /^\[|\.\d+$/.test(page) || page === hostName?.toLowerCase()
}

/** Returns the host of a URL without its port: a page may connect to another port of its host. */
function hostNameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined
}
