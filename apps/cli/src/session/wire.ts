import {
  ErrorCode,
  FrameSplitter,
  OpCode,
  Reader,
  readConnectResponse,
  readReplyHeader,
  readWatcherEvent,
  writeAuthPacket,
  writeConnectRequest,
  Writer,
  Xid,
  type WatcherEvent,
} from '@zabra/protocol'
import type { Connection, Network } from '@zabra/runtime'
import { formatServer, type ServerAddress } from './address.ts'
import { connectionLost, RequestError } from './request-error.ts'

interface Pending {
  readonly xid: number
  readonly path: string | undefined
  readonly resolve: (body: Reader) => void
  readonly reject: (error: Error) => void
}

const MAX_FRAME = 0x4000_0000

/** One connection with one session: requests go out in order, and their answers come back in it. */
export class Wire {
  readonly server: string
  readonly closed: Promise<Error | undefined>
  sessionId = 0n
  onEvent: (event: WatcherEvent) => void = () => {}
  readonly #connection: Connection
  readonly #splitter: FrameSplitter
  readonly #pending: Pending[] = []
  readonly #opened: { resolve: () => void; reject: (error: Error) => void; promise: Promise<void> }
  #settle: (error: Error | undefined) => void = () => {}
  #xid = 0
  #pings: NodeJS.Timeout | undefined
  #ended: Error | true | undefined
  #closing = false

  private constructor(connection: Connection, at: ServerAddress) {
    this.#connection = connection
    this.server = formatServer(at)
    this.closed = new Promise((resolve) => (this.#settle = resolve))
    this.#opened = deferred()
    // Awaited by `open` alone, which may have given up.
    this.#opened.promise.catch(() => {})
    this.#splitter = new FrameSplitter({
      maxLength: MAX_FRAME,
      frame: (bytes, start, end) => this.#frame(new Reader(new Uint8Array(bytes.subarray(start, end)))),
    })
    connection.listen({
      data: (chunk) => this.#data(chunk),
      drain: () => {},
      closed: (cause) => this.#end(cause),
    })
  }

  /** Connects and opens a session. Rejects when nobody answers in time or before `signal` aborts. */
  static async open(
    network: Network,
    at: ServerAddress,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Wire> {
    // Not the signal itself: a socket heeds one for ever, and this one is to end its session in peace.
    const attempt = new AbortController()
    const give = (): void => attempt.abort(signal.reason)
    const timer = setTimeout(
      () => attempt.abort(new Error(`${formatServer(at)} did not answer within ${timeoutMs} ms`)),
      timeoutMs,
    )
    signal.addEventListener('abort', give, { once: true })
    try {
      const wire = new Wire(await network.connect(at, { signal: attempt.signal }), at)
      attempt.signal.addEventListener(
        'abort',
        () => wire.#connection.destroy(attempt.signal.reason as Error),
        {
          once: true,
        },
      )
      const passwd = new Uint8Array(16)
      const request = { protocolVersion: 0, lastZxidSeen: 0n, timeOut: timeoutMs, sessionId: 0n, passwd }
      wire.#send((w) => writeConnectRequest(w, { ...request, readOnly: false }))
      await wire.#opened.promise
      return wire
    } catch (error) {
      throw attempt.signal.aborted ? attempt.signal.reason : error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', give)
    }
  }

  /** Sends a request and resolves to what follows the header of its answer. `path` is for the error. */
  request(
    type: number,
    path: string | undefined,
    write: (w: Writer) => void = () => {},
    xid = ++this.#xid,
  ): Promise<Reader> {
    if (this.#ended !== undefined || this.#closing) return Promise.reject(this.#lost())
    return new Promise((resolve, reject) => {
      this.#pending.push({ xid, path, resolve, reject })
      this.#send((w) => {
        w.int(xid)
        w.int(type)
        write(w)
      })
    })
  }

  /** Proves an identity. The connection ends when the server refuses it. */
  async addAuth(scheme: string, auth: Uint8Array): Promise<void> {
    await this.request(OpCode.auth, undefined, (w) => writeAuthPacket(w, { type: 0, scheme, auth }), Xid.auth)
  }

  /** Ends the session. Resolves when the server has ended it or the connection is gone. */
  async close(): Promise<void> {
    if (this.#ended === undefined && !this.#closing) {
      const answered = this.request(OpCode.closeSession, undefined)
      this.#closing = true
      // Whatever is left undone, the session is over as soon as the server hears of it.
      answered.then(
        () => this.#connection.end(),
        () => {},
      )
    }
    await this.closed
  }

  #send(write: (w: Writer) => void): void {
    const writer = new Writer()
    const mark = writer.beginFrame()
    write(writer)
    writer.endFrame(mark)
    this.#connection.write(writer.take())
  }

  #data(chunk: Uint8Array): void {
    try {
      this.#splitter.push(chunk)
    } catch (error) {
      this.#connection.destroy(error as Error)
    }
  }

  #frame(reader: Reader): void {
    if (this.sessionId === 0n) return this.#handshake(reader)
    const { xid, err } = readReplyHeader(reader)
    if (xid === Xid.ping) return
    if (xid === Xid.notification) return this.onEvent(readWatcherEvent(reader))
    // The answer to an auth packet overtakes requests that still wait.
    const index = xid === Xid.auth ? this.#pending.findIndex((one) => one.xid === xid) : 0
    const pending = this.#pending.splice(Math.max(0, index), 1)[0]
    if (pending === undefined || pending.xid !== xid) {
      const expected = pending === undefined ? 'no answer' : `the answer to request ${pending.xid}`
      return this.#connection.destroy(new Error(`Expected ${expected}, got the one to ${xid}`))
    }
    if (err === 0) pending.resolve(reader)
    else pending.reject(new RequestError(err, pending.path))
  }

  #handshake(reader: Reader): void {
    const { timeOut, sessionId } = readConnectResponse(reader)
    if (timeOut <= 0 || sessionId === 0n)
      return this.#connection.destroy(new RequestError(ErrorCode.SESSIONEXPIRED, undefined))
    this.sessionId = sessionId
    this.#pings = setInterval(
      () =>
        this.#send((w) => {
          w.int(Xid.ping)
          w.int(OpCode.ping)
        }),
      Math.max(1, Math.floor(timeOut / 3)),
    )
    this.#pings.unref()
    this.#opened.resolve()
  }

  #end(cause: Error | undefined): void {
    clearInterval(this.#pings)
    this.#ended = cause ?? true
    const error = this.#lost()
    this.#opened.reject(error)
    for (const { reject } of this.#pending.splice(0)) reject(error)
    this.#settle(this.#closing ? undefined : error)
  }

  #lost(): Error {
    if (this.#ended instanceof RequestError) return this.#ended
    return connectionLost(this.server, this.#ended instanceof Error ? this.#ended : undefined)
  }
}

function deferred() {
  let resolve: () => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { resolve, reject, promise }
}
