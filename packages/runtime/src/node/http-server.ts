import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  MAX_QUERY_PARAMETERS,
  type HttpHandler,
  type HttpLimits,
  type HttpRequest,
  type HttpResponse,
  type HttpServer,
} from '../http.ts'
import type { PeerIdentity } from '../network.ts'
import { ByAddress } from './by-address.ts'
import { listenForSockets } from './network.ts'
import { openPaced, type PacedSocket } from './paced-socket.ts'
import { tlsParametersOf } from './tls-parameters.ts'
import type { NodeTlsNetwork } from './tls.ts'

/** Longest request line and headers in bytes. */
const MAX_HEADER_BYTES = 16 * 1024
/** Most headers of a request. */
const MAX_HEADERS = 64
/** Time in which a new connection sends the headers of its first request, in milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000
/** Time in which a client sends the body of a request, or `MIN_BODY_BYTES` of a longer one, in milliseconds. */
const BODY_TIMEOUT_MS = 60_000
/** What the slowest client sends of a long body within `BODY_TIMEOUT_MS`, in bytes: a snapshot may have many gigabytes. */
const MIN_BODY_BYTES = 4 << 20

/** Returns an HTTP server, or an HTTPS server when `tls` is given; `isMixed` accepts both on one port. */
export function nodeHttpServer({
  tls,
  isMixed = false,
}: { tls?: NodeTlsNetwork | undefined; isMixed?: boolean } = {}): HttpServer {
  return {
    async listen(at, limits, handler) {
      const connections = new HttpConnections(limits)
      const server = createHttpServer(limits, connections, handler)
      const accept = (accepted: Socket, isSecure: boolean, peer: PeerIdentity | undefined): void => {
        accepted.allowHalfOpen = false
        handler.connected?.(isSecure)
        const details = { host: accepted.remoteAddress ?? '', isSecure, peer }
        openPaced(accepted, (socket) => {
          connections.add(socket, details)
          server.emit('connection', socket)
        })
      }
      const failed = (error: Error): void => handler.failed(error)
      const plain = (socket: Socket): void => accept(socket, false, undefined)
      const listener =
        tls === undefined
          ? await listenForSockets(at, plain, failed)
          : await tls.listenForSockets(
              at,
              (socket, peer) => accept(socket, true, peer),
              failed,
              isMixed ? plain : undefined,
            )
      return {
        address: listener.address,
        async close() {
          await listener.close()
          connections.close()
          server.close()
        },
      }
    },
  }
}

interface ConnectionDetails {
  /** The address of the client: a socket that is closed has none. */
  readonly host: string
  readonly isSecure: boolean
  readonly peer: PeerIdentity | undefined
}

/** A request in progress. */
interface Exchange {
  readonly request: IncomingMessage
  /**
   * Since when the server waits for the client, in milliseconds: for the next bytes of its body, or until it has read those of the
   * response. Undefined while the client waits for the server.
   */
  waitsSince: number | undefined
  /** Called when the server begins to read the body. */
  readonly onRead: () => void
}

/** The open connections of one port. */
class HttpConnections {
  readonly #limits: HttpLimits
  readonly #details = new Map<PacedSocket, ConnectionDetails>()
  /** Those of an address in the order of their last response. */
  readonly #byAddress = new ByAddress<PacedSocket>()
  /** Those with a request in progress. */
  readonly #busy = new Map<PacedSocket, Exchange>()
  /** Node enforces its own limits of time only in servers that listen themselves. */
  readonly #deadlines = new Map<PacedSocket, NodeJS.Timeout>()
  #isClosing = false

  constructor(limits: HttpLimits) {
    this.#limits = limits
  }

  add(socket: PacedSocket, details: ConnectionDetails): void {
    if (this.#details.size >= this.#limits.connections) this.#evict()
    socket.on('error', () => {})
    // Node ends the response and drops what is left of the body once it sees the end of a client that has sent its whole request.
    socket.holdsEnd = () => this.#busy.get(socket)?.request.complete === true
    this.#details.set(socket, details)
    this.#byAddress.add(details.host, socket)
    socket.once('close', () => {
      this.#remove(socket)
      this.#busy.delete(socket)
      this.#clearDeadline(socket)
    })
    this.#setDeadline(socket, HEADERS_TIMEOUT_MS, () => true)
  }

  detailsOf(socket: PacedSocket): ConnectionDetails {
    return this.#details.get(socket) ?? { host: '', isSecure: false, peer: undefined }
  }

  /** Begins a request. Returns undefined while another one of its connection has no response: requests are not pipelined. */
  beginRequest(request: IncomingMessage): Exchange | undefined {
    const socket = socketOf(request)
    if (this.#busy.has(socket)) return undefined
    const onRead = (): void => {
      // A handler may begin when the client has left.
      if (this.#busy.get(socket) === exchange) this.#awaitBody(exchange)
    }
    const exchange: Exchange = { request, waitsSince: undefined, onRead }
    this.#busy.set(socket, exchange)
    this.#clearDeadline(socket)
    return exchange
  }

  /** Closes a connection that was silent for too long, unless its client waits for the server. */
  closeSilent(socket: PacedSocket): void {
    const { idleTimeoutMs } = this.#limits
    const exchange = this.#busy.get(socket)
    const since = exchange?.waitsSince
    // A wait may have begun long after the last traffic: the client gets half of the timeout at least.
    const isKept =
      exchange !== undefined && (since === undefined || performance.now() - since < idleTimeoutMs / 2)
    if (isKept) socket.setTimeout(idleTimeoutMs)
    else socket.destroy()
  }

  /**
   * Closes the connection of a request whose body is neither complete in time nor long and on the way. While the server does not read
   * it, the client may not be able to send more.
   */
  #awaitBody(exchange: Exchange): void {
    const { request } = exchange
    const socket = socketOf(request)
    const { source } = socket
    const before = source.bytesRead
    this.#setDeadline(socket, BODY_TIMEOUT_MS, () => {
      if (request.complete) return false
      if (exchange.waitsSince !== undefined && source.bytesRead - before < MIN_BODY_BYTES) return true
      this.#awaitBody(exchange)
      return false
    })
  }

  /** Moves the connection to the end of the order of eviction. */
  endRequest(socket: PacedSocket): void {
    this.#busy.delete(socket)
    socket.passEnd()
    const details = this.#details.get(socket)
    if (details === undefined) return
    if (this.#isClosing) {
      socket.destroySoon()
      return
    }
    this.#byAddress.add(details.host, socket)
    this.#setDeadline(socket, this.#limits.idleTimeoutMs, () => true)
  }

  close(): void {
    this.#isClosing = true
    for (const socket of this.#details.keys()) if (!this.#busy.has(socket)) socket.destroy()
  }

  /** Closes a connection after a time if `isLate` holds then. */
  #setDeadline(socket: PacedSocket, ms: number, isLate: () => boolean): void {
    this.#clearDeadline(socket)
    const timer = setTimeout(() => {
      if (isLate()) socket.destroy()
    }, ms)
    timer.unref()
    this.#deadlines.set(socket, timer)
  }

  #clearDeadline(socket: PacedSocket): void {
    clearTimeout(this.#deadlines.get(socket))
    this.#deadlines.delete(socket)
  }

  /** Closes a connection of the address with most of them: the one that has been idle for longest, or the oldest when all are busy. */
  #evict(): void {
    const [...group] = this.#byAddress.largest()
    const victim = group.find((socket) => !this.#busy.has(socket)) ?? group[0]
    if (victim === undefined) return
    this.#remove(victim)
    victim.destroy()
  }

  #remove(socket: PacedSocket): void {
    const details = this.#details.get(socket)
    if (details === undefined) return
    this.#details.delete(socket)
    this.#byAddress.delete(details.host, socket)
  }
}

/** Returns the socket of a request, which was given to the server as a stream. */
const socketOf = (message: IncomingMessage): PacedSocket => message.socket as Duplex as PacedSocket

function createHttpServer(limits: HttpLimits, connections: HttpConnections, handler: HttpHandler): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: limits.idleTimeoutMs,
  })
  server.maxHeadersCount = MAX_HEADERS
  server.timeout = limits.idleTimeoutMs
  server.on('request', (request, response) => {
    const socket = socketOf(request)
    const exchange = connections.beginRequest(request)
    if (exchange === undefined) {
      socket.destroy()
      return
    }
    response.once('close', () => connections.endRequest(socket))
    void answer(exchange, response, connections.detailsOf(socket), handler)
  })
  server.on('timeout', (socket: Duplex) => connections.closeSilent(socket as PacedSocket))
  // Malformed requests: Node's default answers 400 and closes, without a log line.
  server.on('connect', (_, socket) => socket.destroy())
  server.on('upgrade', (_, socket) => socket.destroy())
  return server
}

async function answer(
  exchange: Exchange,
  response: ServerResponse,
  details: ConnectionDetails,
  handler: HttpHandler,
): Promise<void> {
  const failed = (error: unknown): void =>
    handler.failed(error instanceof Error ? error : new Error(String(error)))
  try {
    await send(response, await handler.handle(requestOf(exchange, details)), exchange, failed)
  } catch (error) {
    failed(error)
    if (response.headersSent) response.destroy()
    else await send(response, { status: 500 }, exchange, failed).catch(() => response.destroy())
  }
}

function requestOf(exchange: Exchange, { isSecure, peer }: ConnectionDetails): HttpRequest {
  const { request } = exchange
  const { method = '', url = '/', headers } = request
  const socket = socketOf(request)
  const mark = url.indexOf('?')
  const query = mark < 0 ? '' : url.slice(mark + 1)
  const parameters = query.split('&', MAX_QUERY_PARAMETERS + 1)
  const isQueryCut = parameters.length > MAX_QUERY_PARAMETERS
  return {
    method,
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(isQueryCut ? parameters.slice(0, MAX_QUERY_PARAMETERS).join('&') : query),
    isQueryCut,
    headers,
    remote: { host: socket.remoteAddress ?? 'unknown', port: socket.remotePort ?? 0 },
    isSecure,
    tls: tlsParametersOf(socket.source),
    peer,
    body: bodyOf(exchange),
  }
}

/** Yields the body of a request, and notes when the server waits for more of it. */
async function* bodyOf(exchange: Exchange): AsyncGenerator<Uint8Array> {
  exchange.onRead()
  exchange.waitsSince = performance.now()
  for await (const chunk of exchange.request) {
    exchange.waitsSince = undefined
    yield chunk as Uint8Array
    exchange.waitsSince = performance.now()
  }
  exchange.waitsSince = undefined
}

async function send(
  response: ServerResponse,
  answer: HttpResponse,
  exchange: Exchange,
  failed: (error: unknown) => void,
): Promise<void> {
  const { request } = exchange
  const { status, headers = {}, body = '' } = answer
  const isWhole = typeof body === 'string' || body instanceof Uint8Array
  // The rest of a body that was not read is not worth its transfer, and what follows an error is not trusted.
  const closes = status >= 400 || !request.complete
  response.writeHead(status, {
    ...headers,
    ...(closes ? { connection: 'close' } : {}),
    ...(isWhole ? { 'content-length': String(Buffer.byteLength(body)) } : {}),
  })
  exchange.waitsSince = performance.now()
  if (request.method === 'HEAD') {
    response.end()
  } else if (isWhole) {
    response.end(body)
  } else {
    exchange.waitsSince = undefined
    const chunks = body[Symbol.asyncIterator]()
    // The next chunk of a body that waits for something may be far.
    response.once('close', () => {
      chunks.return?.().catch(failed)
    })
    for await (const chunk of { [Symbol.asyncIterator]: () => chunks }) {
      if (response.destroyed) return
      exchange.waitsSince = performance.now()
      if (typeof chunk !== 'string') await written(response, chunk)
      else if (!response.write(chunk)) await drained(response)
      exchange.waitsSince = undefined
    }
    exchange.waitsSince = performance.now()
    response.end()
  }
}

/** Writes bytes. Resolves when the kernel has them, or the client has left. */
const written = (response: ServerResponse, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off('close', done)
      resolve()
    }
    response.on('close', done)
    response.write(bytes, done)
  })

/** Resolves when the response can take more, or its client has left. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    if (response.destroyed) resolve()
    else response.on('drain', done).on('close', done)
  })
}
