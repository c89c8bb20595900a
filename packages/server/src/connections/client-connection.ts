import { FrameSplitter, OpCode, ProtocolError, readConnectRequest, Reader } from '@zabra/protocol'
import type { Cancel, Connection, ConnectionHandler } from '@zabra/runtime'
import { canonicalIp, isLoopback } from '../core/auth/index.ts'
import type { Session } from '../core/sessions/index.ts'
import { originOf, userNames } from '../audit/index.ts'
import type { Identity, SessionId } from '../core/types.ts'
import type { ClientOrigin } from '../pipeline/index.ts'
import type { ConnectionPhase } from './client-channel.ts'
import type { ClientService } from './client-service.ts'
import { closeEventOf, type CloseCause } from './close-cause.ts'
import { FlowControl, LINGER_MS, PauseReason, UNSENT_LIMIT } from './flow-control.ts'
import { logContext } from './log-context.ts'
import type { MemoryHolder } from './memory-budget.ts'
import { foreignProtocolOf, ProtocolDetector } from './protocol-detector.ts'
import { ReplyWriter } from './reply-writer.ts'
import { RequestProcessor, type RequestClient } from './request-processor.ts'
import { SessionHandshake, type HandshakeClient } from './session-handshake.ts'
import type { CountedClient } from './top-requests.ts'
import { WatchedPaths } from './watched-paths.ts'

const STOPPING = { reason: 'stopping', text: 'the server is stopping' } as const

/** Serves a client on an accepted connection, or refuses it with a reason in the log. */
export function acceptClient(service: ClientService, wire: Connection): void {
  const { connections, stats } = service
  const host = canonicalIp(wire.remote.host)
  const refusal = service.isAccepting ? connections.refusalOf(host) : STOPPING
  if (refusal !== undefined) {
    stats.connectionsRejected++
    stats.refusals[refusal.reason]++
    const fields = { id: 'client.refused', client: host }
    service.refusals.note(host, fields, `Refused a connection: ${refusal.text}`)
    wire.setHandler({ data() {}, drain() {}, closed() {} })
    wire.destroy()
    return
  }
  if (wire.isSecure !== true) stats.countPlainConnection(isLoopback(host))
  connections.add(new ClientConnection(service, wire, host))
}

const SESSION_CONNECTED = 'A session is connected'
/** Lines about sessions of one address in ten seconds. */
const SESSION_LINES = 100

/** Memory of an idle connection in bytes, with its socket and what `COUNTED_BYTES` leaves out. */
const CONNECTION_BYTES = 8000
/** Memory of TLS beside that, which is not in the heap. */
const TLS_BYTES = 30_000
/** Memory beyond that is counted in steps of so many bytes, so that a request in flight does not change the sum twice. */
const COUNTED_BYTES = 1024
/** Memory of an identity beside its text, in bytes. */
const IDENTITY_BYTES = 100

const bytesOf = (identities: readonly Identity[]): number =>
  identities.reduce((sum, { scheme, id }) => sum + scheme.length + id.length + IDENTITY_BYTES, 0)

/** One client connection: parses its bytes into a four-letter command, a handshake and requests, and sends replies and events. */
class ClientConnection implements RequestClient, HandshakeClient {
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  readonly origin: ClientOrigin | undefined
  readonly establishedAt: number
  identities: readonly Identity[]
  readonly certificateIdentities: readonly Identity[]
  session: Session | undefined
  sessionId: SessionId = 0n
  phase: ConnectionPhase = 'new'
  isFlushQueued = false
  isNotifyQueued = false
  readonly flow: FlowControl
  readonly requests: RequestProcessor
  readonly replyWriter: ReplyWriter

  readonly #service: ClientService
  readonly #splitter: FrameSplitter
  readonly #reader: Reader
  chargedBytes = 0
  previous: MemoryHolder | undefined
  next: MemoryHolder | undefined
  counted: CountedClient | undefined
  readonly #baseBytes: number
  #countedIdentities: readonly Identity[] = []
  #identityBytes = 0
  /** Reads the first bytes, until they are known to be a command or a frame. */
  #detector: ProtocolDetector | undefined
  #cancelDeadline: Cancel | undefined
  /** The handshake, until it has its response. */
  #handshake: SessionHandshake | undefined
  #watchedPaths: WatchedPaths | undefined
  #closesAfterFlush = false
  /** Why the connection ends, once its last bytes are being sent. */
  #cause: CloseCause | undefined
  /** Continues the answer to a four-letter command, whose client did not read it as fast as it was made. */
  #onDrained: (() => void) | undefined
  /** Called after the last reply, once the connection takes no more requests. */
  #onAnswered: (() => void) | undefined
  /** Whether the client has logged in, and its session is being revalidated. */
  #isRevalidating = false

  constructor(service: ClientService, wire: Connection, host: string) {
    const { settings, platform, auth } = service
    this.#service = service
    this.host = host
    this.port = wire.remote.port
    this.isSecure = wire.isSecure === true
    this.#baseBytes = CONNECTION_BYTES + (this.isSecure && wire.transport !== 'memory' ? TLS_BYTES : 0)
    this.origin = service.audit === undefined ? undefined : originOf(host, wire)
    this.establishedAt = platform.clock.wall()
    this.certificateIdentities = auth.identitiesOf(wire.peer)
    this.identities = [{ scheme: 'ip', id: host }, ...this.certificateIdentities]
    const { juteMaxBufferBytes: maxLength, juteMaxBufferExtraBytes: extra } = settings
    this.#reader = new Reader(undefined, 0, 0, maxLength + extra)
    this.flow = new FlowControl(wire, {
      sends: service.slicedWork,
      onSent: () => this.#onSent(),
      unsent: service.stats.unsentBytes,
    })
    this.replyWriter = new ReplyWriter(service, this)
    this.requests = new RequestProcessor(service, this, this.#reader)
    // A web page could otherwise send commands: the bytes of a WebSocket are under its control.
    if (wire.transport !== 'webSocket')
      this.#detector = new ProtocolDetector((bytes) => service.commands.commandIn(bytes))
    this.#splitter = new FrameSplitter({
      maxLength,
      minLength: 1,
      frame: (bytes, start, end) => this.#onFrame(bytes, start, end),
    })
    this.#setDeadline('Closed: it sent no request within nio.sessionlessCnxnTimeout')
    wire.setHandler(new ConnectionEvents(service, this))
  }

  /** Created on first use: many clients watch nothing. */
  get watchedPaths(): WatchedPaths {
    return (this.#watchedPaths ??= new WatchedPaths(this.#service.tree.options.hashKey))
  }

  get watchBytes(): number {
    return this.#watchedPaths?.bytes ?? 0
  }

  get identityBytes(): number {
    const { identities } = this
    if (identities !== this.#countedIdentities) {
      this.#countedIdentities = identities
      this.#identityBytes = bytesOf(identities)
    }
    return this.#identityBytes
  }

  memoryUse(): Readonly<Record<string, number>> {
    return {
      watches: this.watchBytes,
      identities: this.identityBytes,
      unsent: this.flow.unsentBytes + this.flow.sentBytesHeld + this.replyWriter.writer.length,
      partial: this.#splitter.byteSize + this.flow.heldBytes,
      waiting: this.requests.byteSize,
    }
  }

  countMemory(): void {
    if (this.phase === 'closed') return
    const held =
      this.watchBytes +
      this.identityBytes +
      this.flow.unsentBytes +
      this.flow.sentBytesHeld +
      this.replyWriter.writer.length +
      this.#splitter.byteSize +
      this.flow.heldBytes +
      this.requests.byteSize
    const charged = this.#baseBytes + Math.floor(held / COUNTED_BYTES) * COUNTED_BYTES
    if (charged !== this.chargedBytes) this.#service.memory.charge(this, charged)
  }

  deliver(frame: Uint8Array): void {
    if (this.phase === 'open') this.requests.deliver(frame)
  }

  /** Sends the buffered bytes; none while a chunked reply is being written, since that must be sent before them. */
  flush(): void {
    if (this.phase === 'closed') return
    const { unsentBytes } = this.flow
    if (unsentBytes > UNSENT_LIMIT)
      return this.destroy('slow_reader', `Closed: ${unsentBytes} bytes are not read by the client`)
    // A client sends requests once its login is confirmed. Were they here before the session is, an older connection could take the
    // session from a newer one and have them carried out late.
    if (this.#isRevalidating && this.phase === 'connecting') return
    if (!this.requests.isReplying) {
      if (this.replyWriter.writer.length > 0) this.flow.flushWriter(this.replyWriter.writer)
      if (this.#onAnswered !== undefined && this.#isAnswered()) this.#endReplies()
      if (this.#closesAfterFlush) this.#end()
    }
    this.countMemory()
  }

  closeAfterFlush(cause: CloseCause, reason: string, context?: object): void {
    if (this.phase === 'closing' || this.phase === 'closed') return
    this.#splitter.stop()
    this.phase = 'closing'
    this.#cause = cause
    this.#closesAfterFlush = true
    this.#service.flushQueue.add(this)
    this.#noteClosed(cause, reason, context)
    this.#endReplies()
  }

  finishRequests(onAnswered: () => void): void {
    if (this.phase !== 'open') return onAnswered()
    this.#onAnswered = onAnswered
    this.flow.pause(PauseReason.stop)
    this.#service.flushQueue.add(this)
  }

  /** Whether every request that has arrived has its reply. */
  #isAnswered(): boolean {
    return this.requests.length === 0 && !this.flow.isPausedFor(PauseReason.turn)
  }

  #endReplies(): void {
    this.#onAnswered?.()
    this.#onAnswered = undefined
  }

  destroy(cause: CloseCause, reason: string, context?: object): void {
    if (this.phase === 'closed') return
    this.#splitter.stop()
    this.flow.destroy()
    this.onClosed(cause, reason, context)
  }

  stopParsing(): void {
    this.#splitter.stop()
  }

  /** Opens the connection for requests, and handles those that arrived with the handshake. */
  openSession(session: Session, isResumed: boolean, writeResponse: () => void): void {
    const { connections, refusals } = this.#service
    this.#handshake = undefined
    this.session = session
    this.sessionId = session.id
    this.phase = 'open'
    connections.bindSession(this)
    const context = { ...logContext(this), timeoutMs: session.timeout }
    refusals.note(this.host, context, SESSION_CONNECTED, SESSION_CONNECTED, SESSION_LINES)
    this.#recordSession(session, isResumed)
    writeResponse()
    this.replyWriter.stats.lastOperation = OpCode.createSession
    this.#isRevalidating = false
    this.#service.flushQueue.add(this)
    this.flow.resume(PauseReason.session)
    this.#parse(() => this.#splitter.resume())
  }

  waitForLogin(): void {
    this.#setDeadline('Closed: it has not logged in by SASL within nio.sessionlessCnxnTimeout')
    this.#parse(() => this.#splitter.resume())
  }

  mayLogInAs(user: string): boolean {
    return this.#service.sessionUsers.allows(this.#handshake?.sessionId ?? this.sessionId, user)
  }

  #recordSession({ id }: Session, isResumed: boolean): void {
    this.#service.audit?.record({
      category: 'sessions',
      operation: isResumed ? 'sessionResume' : 'sessionOpen',
      result: 'success',
      session: id,
      users: userNames(this.identities),
      ip: this.host,
      origin: this.origin,
      via: 'zk',
    })
  }

  /** Handles the requests that wait for a turn. */
  proceed(): void {
    if (this.phase !== 'open' && this.phase !== 'connecting') return
    this.flow.resume(PauseReason.turn)
    if (this.phase === 'connecting') return this.#parse(() => this.#splitter.resume())
    this.requests.process()
    // Earlier requests, which are queued, may have spent the share.
    if (!this.flow.isPausedFor(PauseReason.turn)) this.#parse(() => this.#splitter.resume())
    this.#throttle()
    if (this.#onAnswered !== undefined) this.#service.flushQueue.add(this)
  }

  waitForTurn(): void {
    this.#splitter.pause()
    this.flow.pause(PauseReason.turn)
    this.#service.turnShares.wait(this)
  }

  onData(chunk: Uint8Array): void {
    if (this.phase === 'closing' || this.phase === 'closed') return
    const first = this.phase === 'new' ? chunk : undefined
    this.#service.turnShares.beginRead(this)
    this.#parse(
      () => (this.#detector === undefined ? this.#splitter.push(chunk) : this.#detect(chunk)),
      first,
    )
    this.#throttle()
    this.#service.receiveTurns.received(this, chunk.length, this.#splitter.pending === 0)
    this.countMemory()
  }

  /** Stops reading while the server has too many writes in flight. */
  #throttle(): void {
    if (this.requests.length > 0) this.#service.throttler.throttle(this)
  }

  /** Resumes replies: the socket has sent its buffered bytes. */
  onDrain(): void {
    if (this.flow.drained()) {
      this.#onDrained?.()
      this.requests.process()
    }
    this.countMemory()
  }

  /** Resumes replies in a later turn, once a long one has been handed to the socket. */
  #onSent(): void {
    this.countMemory()
    if (this.flow.isBackpressured) return
    this.#onDrained?.()
    if (this.phase === 'open' && this.requests.length > 0) this.waitForTurn()
  }

  onClosed(cause: CloseCause, reason: string, context?: object): void {
    if (this.phase === 'closed') return
    this.#service.stats.closed[this.#cause ?? cause]++
    // Where it was closing, the reason is logged.
    if (this.phase !== 'closing') this.#noteClosed(cause, reason, context)
    this.phase = 'closed'
    this.#cancelDeadline?.()
    this.#onDrained?.()
    this.#splitter.stop()
    this.#detector = undefined
    this.#handshake?.cancel()
    this.requests.cancel()
    this.#endReplies()
    this.#service.memory.charge(this, 0)
    this.#service.removeConnection(this)
  }

  #noteClosed(cause: CloseCause, reason: string, context?: object): void {
    const fields = { id: closeEventOf(cause), ...logContext(this), ...context }
    this.#service.refusals.note(this.host, fields, reason)
  }

  /** Closes the connection when its bytes are malformed. `first` holds the first bytes of a connection, if they are parsed. */
  #parse(parse: () => void, first?: Uint8Array): void {
    try {
      parse()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      const context = { reason: error.message }
      const foreign = first === undefined ? undefined : foreignProtocolOf(first)
      if (foreign !== undefined)
        return this.destroy(
          'protocol',
          `Closed: its first bytes are ${foreign}, and this port serves clients of ZooKeeper`,
          context,
        )
      const isTooLarge = error.field === 'a frame length'
      if (isTooLarge) this.#service.stats.largeRequestsRejected++
      this.destroy(
        isTooLarge ? 'too_large' : 'protocol',
        'Closed: its bytes are not a request. A larger limit is set with jute.maxbuffer',
        context,
      )
    }
  }

  /** Executes the four-letter command at the start of the connection, or parses its frames. */
  #detect(chunk: Uint8Array): void {
    const detected = this.#detector!.push(chunk)
    if (detected === undefined) return
    this.#detector = undefined
    if (detected.kind === 'frames') return this.#splitter.push(detected.bytes)
    this.phase = 'closing'
    this.#cause = 'command'
    this.replyWriter.stats.received++
    const { name } = detected.command
    const service = this.#service
    const answer = service.commands.execute(name, detected.argument, this)
    if (typeof answer === 'string') {
      this.flow.send(new TextEncoder().encode(answer))
      return this.#endAnswer()
    }
    this.#sendAnswer(answer).catch((error: unknown) => {
      service.runTurn(() => this.#breakOffAnswer('command', `Closed: ${name} failed with ${String(error)}`))
    })
  }

  /** Sends the answer to a command as fast as the client reads it. */
  async #sendAnswer(chunks: AsyncIterable<string>): Promise<void> {
    const service = this.#service
    for await (const chunk of chunks) {
      if (this.phase === 'closed') return
      service.runTurn(() => {
        this.flow.send(new TextEncoder().encode(chunk))
        this.countMemory()
      })
      if (this.flow.isBackpressured) await this.#drained()
    }
    service.runTurn(() => this.#endAnswer())
  }

  #endAnswer(): void {
    if (this.phase === 'closed') return
    this.#closesAfterFlush = true
    this.#service.flushQueue.add(this)
    this.#service.platform.logger.debug(logContext(this), 'Answered a four-letter command')
  }

  /** Resolves when the client has read what was sent, or has left. Closes the connection of one that reads nothing. */
  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const { platform } = this.#service
      const cancel = platform.clock.after(LINGER_MS, 'client that does not read an answer', () => {
        this.#service.runTurn(() =>
          this.#breakOffAnswer('slow_reader', 'Closed: it did not read the answer to its command'),
        )
      })
      this.#onDrained = () => {
        cancel()
        this.#onDrained = undefined
        resolve()
      }
    })
  }

  #breakOffAnswer(cause: CloseCause, reason: string): void {
    this.#noteClosed(cause, reason)
    this.#cause = cause
    this.destroy(cause, reason)
  }

  #onFrame(bytes: Uint8Array, start: number, end: number): void {
    const { stats } = this.#service
    this.replyWriter.stats.received++
    stats.received++
    stats.requestBytes += end - start
    if (this.phase !== 'open') return this.#onEarlyFrame(bytes, start, end)
    const { writer } = this.replyWriter
    const before = writer.length
    this.requests.handle(bytes, start, end)
    const replied = Math.max(0, writer.length - before)
    if (this.#service.turnShares.isSpent(end - start + replied)) this.waitForTurn()
  }

  #onEarlyFrame(bytes: Uint8Array, start: number, end: number): void {
    if (this.phase === 'new') return this.#startHandshake(bytes, start, end)
    if (this.phase !== 'connecting') return
    this.requests.handleBeforeLogin(bytes, start, end)
    if (this.phase !== 'connecting') return
    if (!this.identities.some(({ scheme }) => scheme === 'sasl')) {
      if (this.#service.turnShares.isSpent(end - start)) this.waitForTurn()
      return
    }
    this.#splitter.pause()
    this.#cancelDeadline?.()
    this.#isRevalidating = true
    this.#handshake!.resume()
  }

  #startHandshake(bytes: Uint8Array, start: number, end: number): void {
    this.phase = 'connecting'
    // Requests that follow wait until the session is open.
    this.#splitter.pause()
    this.#cancelDeadline?.()
    this.#cancelDeadline = undefined
    const request = readConnectRequest(this.#reader.reset(bytes, start, end))
    this.#handshake = new SessionHandshake(this.#service, this, request)
    this.#handshake.start()
  }

  /** Closes the connection unless it gets on within the time that a client without a session has. */
  #setDeadline(reason: string): void {
    const { platform, settings, stats } = this.#service
    const awaited = this.phase
    this.#cancelDeadline = platform.clock.after(
      settings.sessionlessTimeoutMs,
      'client without a session',
      () =>
        this.#service.runTurn(() => {
          if (this.phase !== awaited) return
          stats.sessionlessExpired++
          this.destroy('idle', reason)
        }),
    )
  }

  #end(): void {
    this.#closesAfterFlush = false
    this.flow.end()
    const { platform } = this.#service
    this.#cancelDeadline?.()
    // Cancelled when the client closes: thousands may end in the meantime, and a timer holds the connection.
    this.#cancelDeadline = platform.clock.after(LINGER_MS, 'client that does not read its last bytes', () => {
      this.#service.runTurn(() => this.destroy('slow_reader', 'Closed: it did not read its last bytes'))
    })
  }
}

/** Handles each event of the socket inside `ClientService.runTurn`. */
class ConnectionEvents implements ConnectionHandler {
  readonly #service: ClientService
  readonly #connection: ClientConnection

  constructor(service: ClientService, connection: ClientConnection) {
    this.#service = service
    this.#connection = connection
  }

  data(chunk: Uint8Array): void {
    this.#service.runTurn(() => this.#connection.onData(chunk))
  }

  held(): void {
    this.#service.runTurn(() => this.#connection.countMemory())
  }

  drain(): void {
    this.#service.runTurn(() => this.#connection.onDrain())
  }

  /** Keeps the connection open for the answer to a command, which may follow the end of the client's side. */
  ended(): boolean {
    return this.#connection.phase === 'closing'
  }

  closed(cause?: Error): void {
    this.#service.runTurn(() =>
      cause === undefined
        ? this.#connection.onClosed('client', 'Closed by its client')
        : this.#connection.onClosed('network', `Closed: ${cause.message}`),
    )
  }
}
