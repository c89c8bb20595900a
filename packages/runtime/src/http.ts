import type { Address, Listener, PeerIdentity, TlsParameters } from './network.ts'

/** Most parameters of a query that are parsed: thousands of them take Node milliseconds, and no operation has more than three. */
export const MAX_QUERY_PARAMETERS = 64

/** An HTTP request. Header names are in lower case. */
export interface HttpRequest {
  readonly method: string
  /** The path before `?`, as the client sent it: percent-encoded. */
  readonly path: string
  readonly query: URLSearchParams
  /** Whether the client has sent more than `MAX_QUERY_PARAMETERS`, which `query` lacks. Such a request is not understood. */
  readonly isQueryCut?: boolean
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly remote: Address
  readonly isSecure: boolean
  /** What the TLS handshake has agreed on; undefined without TLS. */
  readonly tls?: TlsParameters | undefined
  /** The identity of a client that has shown a certificate. */
  readonly peer: PeerIdentity | undefined
  /** The body in chunks. It is read from the network as fast as the iterator asks. */
  readonly body: AsyncIterable<Uint8Array>
}

/**
 * An HTTP response. A body of several chunks is made as fast as the client reads it, and its iterator is closed when the client leaves, also
 * while the next chunk is awaited. A chunk of bytes is used until the next one is asked for.
 */
export interface HttpResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | AsyncIterable<string | Uint8Array> | undefined
}

export interface HttpLimits {
  /**
   * Most connections. At the limit a new connection replaces one of the address, or network of IPv6, with most of them: the one that has
   * been idle for longest, or else the oldest.
   */
  readonly connections: number
  /** Time without traffic after which a connection closes, in milliseconds, unless its client waits for the server. */
  readonly idleTimeoutMs: number
}

/** Answers requests. A rejection is answered with status 500 and reported to `failed`. */
export interface HttpHandler {
  /** Called for each connection that is accepted: with TLS, after its handshake. */
  connected?(isSecure: boolean): void
  handle(request: HttpRequest): Promise<HttpResponse>
  /** Called with the errors of `handle` and of connections that could not be accepted. */
  failed(error: Error): void
}

/** Accepts HTTP requests. */
export interface HttpServer {
  /** Rejects with a `NetworkError` when the port cannot be opened. Closing the listener closes idle connections; others close after their response. */
  listen(
    at: { readonly host?: string; readonly port: number },
    limits: HttpLimits,
    handler: HttpHandler,
  ): Promise<Listener>
}
