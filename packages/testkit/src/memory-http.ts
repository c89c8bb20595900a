import {
  NetworkError,
  type Address,
  type HttpHandler,
  type HttpRequest,
  type HttpServer,
  type Listener,
} from '@zabra/runtime'

/** The text of a response. */
export interface TextResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

export interface TestRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The port; the one that was opened first by default. */
  readonly port?: number
  /** The address of the caller; one of this machine by default. */
  readonly from?: string
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

  /** Sends a request to the open port. `target` is a path with its query. */
  async request(
    target: string,
    { method = 'GET', headers = {}, from = '127.0.0.1', body: sent, port }: TestRequest = {},
  ): Promise<TextResponse> {
    const [first] = this.#open.values()
    const open = port === undefined ? first : this.#open.get(port)
    if (open === undefined) throw new NetworkError('The port is closed', 'ECONNREFUSED')
    const { address, handler } = open
    const url = new URL(target, 'http://localhost')
    const request: HttpRequest = {
      method,
      path: url.pathname,
      query: url.searchParams,
      headers: { host: `localhost:${address.port}`, ...headers },
      remote: { host: from, port: 40_000 },
      isSecure: false,
      peer: undefined,
      body: bodyOf(sent),
    }
    const { status, headers: answered = {}, body = '' } = await handler.handle(request)
    return { status, headers: answered, text: await textOf(body) }
  }
}

async function* bodyOf(text = ''): AsyncGenerator<Uint8Array> {
  if (text !== '') yield new TextEncoder().encode(text)
}

async function textOf(body: string | Uint8Array | AsyncIterable<string | Uint8Array>): Promise<string> {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return new TextDecoder().decode(body)
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body)
    text += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
  return text
}
