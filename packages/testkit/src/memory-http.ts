import { concatBytes } from '@zabra/protocol'
import {
  NetworkError,
  type Address,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  type HttpServer,
  type Listener,
} from '@zabra/runtime'

/** A response with its whole body. */
export interface TextResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly bytes: Uint8Array
}

export interface TestRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** The port; the one that was opened first by default. */
  readonly port?: number
  /** The address of the caller; one of this machine by default. */
  readonly from?: string
  /** Whether the request comes over HTTPS. */
  readonly isSecure?: boolean
  /** Whether the query had more parameters than a server parses. */
  readonly isQueryCut?: boolean
}

/** An HTTP server without a network: a test calls the handler of the open port. */
export class MemoryHttp implements HttpServer {
  readonly #open = new Map<number, { readonly address: Address; readonly handler: HttpHandler }>()
  /** Errors that were reported to the handler of the open port. */
  readonly failures: Error[] = []
  /** Ports that another program uses. */
  readonly usedPorts = new Set<number>()

  async listen(
    at: { readonly host?: string; readonly port: number },
    _limits: unknown,
    handler: HttpHandler,
  ): Promise<Listener> {
    if (this.usedPorts.has(at.port)) throw new NetworkError(`Cannot listen on port ${at.port}`, 'EADDRINUSE')
    const address = { host: at.host ?? '0.0.0.0', port: at.port }
    this.#open.set(at.port, { address, handler })
    return { address, close: async () => void this.#open.delete(at.port) }
  }

  /** Sends a request to the open port, and reads the whole response. `target` is a path with its query. */
  async request(target: string, options: TestRequest = {}): Promise<TextResponse> {
    const { status, headers = {}, body = '' } = await this.open(target, options)
    const bytes = await bytesOf(body)
    return { status, headers, text: new TextDecoder().decode(bytes), bytes }
  }

  /** Sends a request, and leaves the body of the response to the caller. */
  async open(
    target: string,
    {
      method = 'GET',
      headers = {},
      from = '127.0.0.1',
      body: sent,
      port,
      isSecure = false,
      isQueryCut = false,
    }: TestRequest = {},
  ): Promise<HttpResponse> {
    const [first] = this.#open.values()
    const open = port === undefined ? first : this.#open.get(port)
    if (open === undefined) throw new NetworkError('The port is closed', 'ECONNREFUSED')
    const { address, handler } = open
    const url = new URL(target, 'http://localhost')
    const request: HttpRequest = {
      method,
      path: url.pathname,
      query: url.searchParams,
      isQueryCut,
      headers: { host: `localhost:${address.port}`, ...headers },
      remote: { host: from, port: 40_000 },
      isSecure,
      peer: undefined,
      body: bodyOf(sent),
    }
    return handler.handle(request)
  }
}

async function* bodyOf(sent: string | Uint8Array = ''): AsyncGenerator<Uint8Array> {
  if (sent.length > 0) yield typeof sent === 'string' ? new TextEncoder().encode(sent) : sent
}

async function bytesOf(body: string | Uint8Array | AsyncIterable<string | Uint8Array>): Promise<Uint8Array> {
  if (body instanceof Uint8Array) return body
  if (typeof body === 'string') return new TextEncoder().encode(body)
  const chunks: Uint8Array[] = []
  for await (const chunk of body) {
    chunks.push(typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk.slice())
  }
  return concatBytes(chunks)
}
