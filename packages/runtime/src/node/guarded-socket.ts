import type { Socket } from 'node:net'
import type { Server, TLSSocket } from 'node:tls'
import { ClientFlight } from './client-flight.ts'
import { RECORD_HEADER_BYTES } from './record-opener.ts'
import { TurnQueue, type Step } from './turn-queue.ts'
import { WrappedSocket } from './wrapped-socket.ts'

/** Longest record behind its header; those of TLS 1.2 have up to 2 KiB more than their contents. */
const MAX_RECORD_BYTES = 16_384 + 2048
/** The first byte of the version in each record. */
const MAJOR_VERSION = 3
/** The highest bit of the first byte and the third byte begin a ClientHello of SSLv2, which OpenSSL understands. */
const SSL2_BIT = 0x80
const SSL2_CLIENT_HELLO = 1
/** Milliseconds of one turn of the event loop for the records of all handshakes; one with certificates takes up to 10 ms. */
const TURN_MS = 3
const records = new TurnQueue(TURN_MS)

/** A line of Node's key log with the secret of the client in the handshake. */
const CLIENT_SECRET = /^CLIENT_HANDSHAKE_TRAFFIC_SECRET \w+ (\w+)/

/** Judges the certificates of the clients of a TLS server before the server verifies them. */
export class CertificateGuard {
  readonly #server: Server
  readonly #guarded = new WeakMap<TLSSocket, GuardedSocket>()
  /** The one whose bytes the server processes in this call: its events do not say from which stream it has made a socket. */
  #processed: GuardedSocket | undefined
  /** Errors of sockets without keys, which the server closes next, in the same order. */
  readonly #failures: ((source: Socket | undefined) => void)[] = []

  constructor(server: Server) {
    this.#server = server
    server.on('keylog', (line: Buffer, socket: TLSSocket) => {
      const guarded = this.#processed
      if (guarded === undefined) return
      this.#guarded.set(socket, guarded)
      guarded.hasKeys = true
      const [, secret] = CLIENT_SECRET.exec(line.toString('latin1')) ?? []
      if (secret !== undefined)
        guarded.decryptWith(socket.getCipher().standardName, Buffer.from(secret, 'hex'))
    })
  }

  /** Has the server begin a handshake. Calls `refuse` with the reason when it must not verify the certificates of the client. */
  begin(source: Socket, refuse: (reason: string) => void): void {
    const guarded = new GuardedSocket(source, { refuse, failed: () => this.#failures.shift()?.(source) })
    const begin = (): void => {
      this.#processed = guarded
    }
    const end = (): void => {
      this.#processed = undefined
      // A client of TLS 1.2 can show certificates long before it has keys.
      if (guarded.isJudged && guarded.hasKeys) guarded.off('data', begin).off('data', end)
      guarded.passNext()
    }
    // A listener of data would have it flow before TLS has its own, which is called between these two.
    guarded.pause()
    guarded.on('data', begin)
    this.#server.emit('connection', guarded)
    guarded.on('data', end)
    // The socket of TLS, which has the value of before, closes both.
    guarded.allowHalfOpen = true
  }

  /** Returns the stream below a socket of the server that has keys, if it is guarded. */
  streamBelow(socket: TLSSocket): GuardedSocket | undefined {
    return this.#guarded.get(socket)
  }

  /** Calls `report` with the socket below one that has failed without keys, when the server closes it after its error. */
  onClose(report: (source: Socket | undefined) => void): void {
    if (this.#failures.push(report) > 1) return
    setImmediate(() => {
      for (const other of this.#failures.splice(0)) other(undefined)
    })
  }
}

interface GuardedSocketEvents {
  /** Called with the reason when TLS must not get a record. */
  readonly refuse: (reason: string) => void
  /** Called when TLS closes it before it has keys. */
  readonly failed: () => void
}

/** Passes the records of a client to TLS one by one until no certificates can come, and all bytes from then on. */
export class GuardedSocket extends WrappedSocket {
  /** Whether TLS has agreed on keys with the client. */
  hasKeys = false
  readonly #events: GuardedSocketEvents
  #flight: ClientFlight | undefined = new ClientFlight()
  /** The header of a record whose rest has not arrived. */
  #header: Buffer | undefined
  #isFirst = true
  /** Whether the client speaks another protocol, which TLS names in its refusal. */
  #isForeign = false

  /** Passes on the next record, once TLS has processed the one before it. */
  readonly #passRecord: Step = () => {
    if (this.#flight === undefined || this.readableLength > 0 || this.destroyed) return
    const record = this.#nextRecord()
    if (record === undefined) return
    const fault = this.#isForeign ? undefined : this.#flight.faultOf(record)
    if (fault !== undefined) return this.#events.refuse(fault)
    const isLast = this.#isForeign || this.#flight.isOver
    this.push(record)
    if (isLast) this.#passAll()
  }

  readonly #passInTurn = (): void => {
    if (this.#flight !== undefined) records.run(this.#passRecord)
  }

  constructor(source: Socket, events: GuardedSocketEvents) {
    // Empty whenever TLS has read what was passed on.
    super(source, 1)
    this.#events = events
    source.on('readable', this.#passInTurn)
    source.on('end', () => this.push(null))
  }

  /** Whether no certificates can come any more. */
  get isJudged(): boolean {
    return this.#flight === undefined
  }

  /** Bytes that TLS has got: what waits here and in the socket, while TLS does not read, has none of its data yet. */
  get bytesRead(): number {
    return this.source.bytesRead - this.heldBytes
  }

  /** Passes on the next record after one that TLS has processed. */
  passNext(): void {
    if (this.#flight !== undefined) process.nextTick(this.#passInTurn)
  }

  decryptWith(suite: string, secret: Uint8Array): void {
    this.#flight?.decryptWith(suite, secret)
  }

  override _read(): void {
    if (this.#flight === undefined) this.source.resume()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    records.drop(this.#passRecord)
    this.#flight = undefined
    if (!this.hasKeys && !this.source.destroyed) this.#events.failed()
    super._destroy(error, done)
  }

  /** Returns the next record; undefined if it is not complete, or was refused. */
  #nextRecord(): Buffer | undefined {
    const { source } = this
    const header = this.#header ?? (source.read(RECORD_HEADER_BYTES) as Buffer | null)
    // The last bytes before the end of the client may be fewer.
    if (header === null || header.length < RECORD_HEADER_BYTES) return undefined
    this.#header = undefined
    this.#isForeign = this.#isFirst && header[1] !== MAJOR_VERSION
    this.#isFirst = false
    if (this.#isForeign && (header[0]! & SSL2_BIT) !== 0 && header[2] === SSL2_CLIENT_HELLO) {
      this.#events.refuse('it has sent a ClientHello of SSLv2')
      return undefined
    }
    if (this.#isForeign) return header
    const length = header.readUInt16BE(3)
    if (length > MAX_RECORD_BYTES) {
      this.#events.refuse(`it has sent a record of ${length} bytes, and ${MAX_RECORD_BYTES} is the limit`)
      return undefined
    }
    if (length === 0) return header
    const body = source.read(length) as Buffer | null
    if (body === null) this.#header = header
    return body === null || body.length < length ? undefined : Buffer.concat([header, body])
  }

  /** Passes on all that comes from now on. */
  #passAll(): void {
    this.#flight = undefined
    const { source } = this
    source.off('readable', this.#passInTurn)
    source.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) source.pause()
    })
    source.resume()
  }
}
