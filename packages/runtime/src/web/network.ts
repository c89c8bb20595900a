import {
  NetworkError,
  shownUrl,
  type AbortSignalLike,
  type Address,
  type Connection,
  type ConnectionHandler,
  type Network,
} from '../network.ts'

/** The part of the `WebSocket` of browsers, Deno, Bun and Node that is used. */
export interface WebSocketLike {
  binaryType: string
  readonly bufferedAmount: number
  readonly readyState: number
  send(data: Uint8Array): void
  close(code?: number, reason?: string): void
  addEventListener(
    type: 'open' | 'message' | 'error' | 'close',
    listener: (event: {
      readonly data?: unknown
      readonly code?: number
      readonly wasClean?: boolean
    }) => void,
  ): void
}

export type WebSocketConstructor = new (url: string) => WebSocketLike

const OPEN = 1
const NORMAL = 1000
const HIGH_WATER = 64 * 1024
/** Most bytes of one message; servers may refuse longer ones. */
const MESSAGE_BYTES = 64 * 1024
/** Interval of polling the write buffer, since browsers have no event for its end. */
const POLL_MS = 5

/**
 * Returns a network of byte streams over the `WebSocket` of the platform, for clients; it cannot listen. Browsers have no
 * backpressure for reading: bytes received while a connection is paused are queued.
 */
export function webSocketClientNetwork({
  WebSocket = (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket,
}: { WebSocket?: WebSocketConstructor | undefined } = {}): Network {
  return {
    listen: () => Promise.reject(new NetworkError('Cannot listen: a browser has no server side.', 'ENOTSUP')),
    connect(to, { signal } = {}) {
      if (WebSocket === undefined)
        return Promise.reject(
          new NetworkError(
            'Cannot connect: this platform has no WebSocket. Pass one as an option.',
            'ENOTSUP',
          ),
        )
      return connect(WebSocket, to, signal)
    },
  }
}

function connect(
  WebSocket: WebSocketConstructor,
  to: Address,
  signal: AbortSignalLike | undefined,
): Promise<Connection> {
  const url = to.url ?? `ws://${to.host.includes(':') ? `[${to.host}]` : to.host}:${to.port}/`
  return new Promise((resolve, reject) => {
    const webSocket = new WebSocket(url)
    webSocket.binaryType = 'arraybuffer'
    const fail = (code: string, cause?: unknown): void => {
      signal?.removeEventListener('abort', aborted)
      reject(new NetworkError(`Cannot connect to ${shownUrl(url)} (${code})`, code, { cause }))
    }
    const aborted = (): void => {
      fail('ABORT_ERR', signal!.reason)
      webSocket.close()
    }
    if (signal?.aborted === true) aborted()
    signal?.addEventListener('abort', aborted, { once: true })
    // Browsers hide from pages why a connection failed, so there is one code.
    webSocket.addEventListener('error', () => fail('ECONNREFUSED'))
    webSocket.addEventListener('open', () => {
      signal?.removeEventListener('abort', aborted)
      resolve(new WebConnection(webSocket, to, url.startsWith('wss:')))
    })
  })
}

class WebConnection implements Connection {
  readonly remote: Address
  readonly local: Address = { host: '', port: 0 }
  readonly transport = 'webSocket'
  readonly isSecure: boolean
  readonly #webSocket: WebSocketLike
  #events: ConnectionHandler | undefined
  #cause: Error | undefined
  #full = false
  #paused = false
  #closed = false
  #delivering = false
  #isDestroyed = false
  /** Messages received and not delivered yet. */
  #queued: Uint8Array[] = []

  constructor(webSocket: WebSocketLike, remote: Address, secure: boolean) {
    this.#webSocket = webSocket
    this.remote = remote
    this.isSecure = secure
    webSocket.addEventListener('message', ({ data }) => {
      if (data instanceof ArrayBuffer) this.#queued.push(new Uint8Array(data))
      else if (data instanceof Uint8Array) this.#queued.push(data)
      else this.destroy(new NetworkError('The peer sent text; only binary messages are read', 'EPROTO'))
      this.#deliver()
    })
    webSocket.addEventListener('close', ({ code, wasClean }) => this.#gone(wasClean === true, code))
  }

  get bufferedBytes(): number {
    return this.#closed ? 0 : this.#webSocket.bufferedAmount
  }

  setHandler(events: ConnectionHandler): void {
    this.#events = events
    this.#deliverSoon()
  }

  write(bytes: Uint8Array): boolean {
    if (this.#webSocket.readyState !== OPEN || bytes.length === 0) return true
    for (let at = 0; at < bytes.length; at += MESSAGE_BYTES)
      this.#webSocket.send(bytes.subarray(at, at + MESSAGE_BYTES))
    if (this.bufferedBytes < HIGH_WATER) return !this.#full
    if (!this.#full) this.#scheduleDrainCheck()
    this.#full = true
    return false
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#deliverSoon()
  }

  end(): void {
    if (this.#webSocket.readyState === OPEN) this.#webSocket.close(NORMAL)
  }

  destroy(cause?: Error): void {
    if (this.#closed || this.#isDestroyed) return
    this.#isDestroyed = true
    this.#cause = cause
    this.#queued = []
    this.#webSocket.close()
    // A browser cannot close at once: the platform closes the connection later, so `closed` is called without waiting for it.
    queueMicrotask(() => this.#gone(true))
  }

  #deliverSoon(): void {
    if (this.#queued.length > 0) setTimeout(() => this.#deliver(), 0)
  }

  #deliver(): void {
    if (this.#delivering || this.#events === undefined) return
    this.#delivering = true
    try {
      while (!this.#paused && !this.#closed && !this.#isDestroyed && this.#queued.length > 0) {
        const bytes = this.#queued.shift()!
        if (bytes.length > 0) this.#events.data(bytes)
      }
    } finally {
      this.#delivering = false
    }
  }

  #scheduleDrainCheck(): void {
    setTimeout(() => {
      if (this.#closed || !this.#full) return
      if (this.bufferedBytes > 0) return this.#scheduleDrainCheck()
      this.#full = false
      this.#events?.drain()
    }, POLL_MS)
  }

  #gone(isOrderly: boolean, code = NORMAL): void {
    if (this.#closed) return
    if (!this.#isDestroyed) this.#deliver()
    this.#closed = true
    const broken = (): Error => new NetworkError(`The WebSocket broke (close code ${code})`, 'ECONNRESET')
    this.#events?.closed(this.#cause ?? (isOrderly ? undefined : broken()))
  }
}
