import { ErrorCode, FrameSplitter, OpCode, ProtocolError, readConnectRequest, Reader } from '@zabra/protocol'
import { invariant, type Cancel, type Connection } from '@zabra/runtime'
import type { Summary } from '../core/histogram.ts'
import type { ReadCaller } from '../core/reads/index.ts'
import type { Session } from '../core/sessions/index.ts'
import type { Identity, SessionId, SubTxn, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import { SessionHandshake, type HandshakeClient } from './session-handshake.ts'
import { Authentication } from './authentication.ts'
import type { ClientService } from './client-service.ts'
import { logContext } from './log-context.ts'
import { BACKLOG_LIMIT, FlowControl, PauseReason, LINGER_MS, UNSENT_LIMIT } from './flow-control.ts'
import { startedSync, RequestQueue, QueuedRequest } from './request-queue.ts'
import { ProtocolDetector } from './protocol-detector.ts'
import { HEADER_BYTES, isRead, isWrite } from './operations.ts'
import { ReplyWriter } from './reply-writer.ts'
import type { ConnectionPhase } from './connection-phase.ts'
import { ReadExecutor } from './read-executor.ts'
import { isSessionMoved, SESSION_MOVED_REASON } from './replies.ts'
import { MAX_WATCHED_PATH_CHARS, WatchedPaths } from './watched-paths.ts'
import { ClientConnectionHandler } from './client-connection-handler.ts'
import type { AcceptedWrite, WriteCallback } from '../pipeline/index.ts'

/** One client: its handshake, its requests in their order, and its replies and notifications. */
export class ClientConnection
  implements NotifiedWatcher, WriteCallback, HandshakeClient, ReadCaller<ClientConnection>
{
  readonly listener = this
  readonly replyWriter: ReplyWriter
  /** The client's address as identities have it. */
  readonly host: string
  readonly port: number
  /** Wall clock, milliseconds. */
  readonly establishedAt: number
  identities: readonly Identity[]
  /** What its certificate proves; among `identities` from the start. */
  readonly certificateIdentities: readonly Identity[]
  session: Session | undefined
  sessionId: SessionId = 0n
  /** Requests since the connection began, or since `crst`. */
  receivedCount = 0
  /** Whether something waits to be sent at the end of the turn. Kept by the core. */
  isFlushQueued = false
  isNotifyQueued = false

  readonly #core: ClientService
  readonly #flow: FlowControl
  readonly #splitter: FrameSplitter
  readonly #line: RequestQueue
  readonly #reader: Reader
  #authentication: Authentication | undefined
  /** Until it has asked for something. */
  #cancelDeadline: Cancel | undefined
  #phase: ConnectionPhase = 'new'
  /** The first bytes, until they are known to be a word or the length of a handshake. */
  #first: ProtocolDetector | undefined
  /** Requests behind a handshake that is not answered yet. */
  #early: Uint8Array[] = []
  /** The handshake, while it is not answered. */
  #arrival: SessionHandshake | undefined
  /** The results of the multi that is being applied: its events come before its reply. */
  readonly #reading: ReadExecutor
  #watched: WatchedPaths | undefined
  #endAfterFlush = false

  constructor(core: ClientService, wire: Connection, host: string) {
    this.#core = core
    this.#flow = new FlowControl(wire)
    this.#line = new RequestQueue(core.bufferPool)
    this.host = host
    this.port = wire.remote.port
    this.establishedAt = core.ports.clock.wall()
    this.certificateIdentities = core.certificateIdentities(wire)
    this.identities = [{ scheme: 'ip', id: host }, ...this.certificateIdentities]
    this.replyWriter = new ReplyWriter(core, this)
    this.#reading = new ReadExecutor(core, this)
    const { juteMaxBufferBytes: max, juteMaxBufferExtraBytes: extra, sessionlessTimeoutMs } = core.settings
    // A page must not be able to have words run, so they are not looked for in a WebSocket.
    if (wire.transport !== 'webSocket')
      this.#first = new ProtocolDetector((bytes) => core.commands.commandIn(bytes))
    this.#reader = new Reader(undefined, 0, 0, max + extra)
    this.#splitter = new FrameSplitter({
      maxLength: max,
      minLength: 1,
      frame: (bytes, start, end) => this.#frame(bytes, start, end),
    })
    this.#cancelDeadline = core.ports.clock.after(sessionlessTimeoutMs, 'client without a session', () =>
      core.runTurn(() => {
        if (this.#phase !== 'new') return
        core.stats.sessionlessExpired++
        this.destroy('Closed: it has asked for nothing in time')
      }),
    )
    wire.setHandler(new ClientConnectionHandler(core, this))
  }

  /** Whether the server does not read this client for its own load: then its silence says nothing. */
  get isThrottled(): boolean {
    return this.#flow.isPausedFor(PauseReason.overload)
  }

  /** Made when it is first asked for: many clients watch nothing. */
  get watchedPaths(): WatchedPaths {
    return (this.#watched ??= new WatchedPaths())
  }

  get queuedRequests(): number {
    return this.#line.length
  }

  get isClosing(): boolean {
    return this.#phase === 'closing'
  }

  // What the core tells

  deliver(frame: Uint8Array): void {
    if (this.#phase === 'open' && !this.#reading.captureNotification(frame))
      this.replyWriter.addNotification(frame)
  }

  onPart(txn: SubTxn, isApplied: boolean): void {
    if (this.#phase === 'open') this.replyWriter.addMultiResult(txn, isApplied)
  }

  onApplied(entry: AcceptedWrite, err: number): void {
    if (this.#phase !== 'open') return
    if (isSessionMoved(entry.logged.txn)) return this.destroy(SESSION_MOVED_REASON)
    if (this.#nextInLine(entry.type, entry.xid) === undefined) return
    const size = this.replyWriter.writeReply(entry, err)
    this.#replied(size, entry.type, entry.startedAt, this.#core.stats.updateLatency)
    if (entry.type === OpCode.closeSession) this.#endWith('Closed by its client')
    else this.processQueue()
  }

  onLost(entry: Pick<AcceptedWrite, 'xid' | 'type' | 'startedAt'>): void {
    if (entry.type === OpCode.closeSession)
      return this.destroy('Closed: its session could not be ended, the disk is full')
    if (this.#phase !== 'open') return
    if (this.#nextInLine(entry.type, entry.xid) === undefined) return
    this.#error(entry.xid, entry.type, this.#core.tree.lastZxid, ErrorCode.SYSTEMERROR, entry.startedAt)
    this.processQueue()
  }

  onSynced(): void {
    const sync = this.#nextInLine(OpCode.sync)
    if (sync === undefined) return
    this.#read(sync.xid, OpCode.sync, this.#reader.reset(sync.syncBody!), sync.startedAt)
    this.processQueue()
  }

  /** Reads on after the server was overloaded. */
  resumeReading(): void {
    this.#flow.resume(PauseReason.overload)
  }

  /** Sends what is collected; nothing while a long reply is being made, which comes before it. */
  flush(): void {
    if (this.#phase === 'closed') return
    const { unsentBytes: unsent } = this.#flow
    if (unsent > UNSENT_LIMIT) return this.destroy(`Closed: ${unsent} bytes wait for it to read them`)
    if (this.#reading.isBusy) return
    if (this.replyWriter.writer.length > 0) this.#flow.flushWriter(this.replyWriter.writer)
    if (this.#endAfterFlush) this.#end()
  }

  /** Sends what there is, then closes. The session goes on without a connection. */
  closeAfterFlush(reason: string): void {
    if (this.#phase !== 'closing' && this.#phase !== 'closed') this.#endWith(reason)
  }

  /** Closes at once. The session goes on without a connection. */
  destroy(reason: string): void {
    if (this.#phase === 'closed') return
    this.#splitter.stop()
    this.#flow.destroy()
    this.onClosed(reason)
  }

  // Bytes in

  /** Takes what has come in. */
  onData(chunk: Uint8Array): void {
    if (this.#phase === 'closing' || this.#phase === 'closed') return
    this.#guard(() => (this.#first === undefined ? this.#splitter.push(chunk) : this.#begins(chunk)))
    this.#hold()
  }

  /** Closes the connection when what it has sent cannot be read. */
  #guard(read: () => void): void {
    try {
      read()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#core.logMalformedRequest(logContext(this), error)
      this.destroy('Closed: its bytes are not a request')
    }
  }

  /** The first bytes are a four-letter word or belong to a handshake. */
  #begins(chunk: Uint8Array): void {
    const opening = this.#first!.push(chunk)
    if (opening === undefined) return
    this.#first = undefined
    if (opening.kind === 'frames') return this.#splitter.push(opening.bytes)
    this.#phase = 'closing'
    this.receivedCount++
    const { name } = opening.word
    this.#core.commands.execute(name, opening.argument, this).then(
      (parts) => this.#core.runTurn(() => this.#say(parts)),
      (error: unknown) =>
        this.#core.runTurn(() => this.destroy(`Closed: ${name} failed with ${String(error)}`)),
    )
  }

  #say(parts: readonly string[]): void {
    if (this.#phase === 'closed') return
    for (const part of parts) this.replyWriter.writer.raw(new TextEncoder().encode(part))
    this.#endWith('Answered a four-letter word')
  }

  #frame(bytes: Uint8Array, start: number, end: number): void {
    this.receivedCount++
    this.#core.stats.received++
    this.#core.stats.requestBytes += end - start
    if (this.#phase === 'open') this.#request(bytes, start, end)
    else if (this.#phase === 'new') this.#connect(bytes, start, end)
    else if (this.#phase === 'connecting') this.#early.push(bytes.slice(start, end))
  }

  // The handshake

  #connect(bytes: Uint8Array, start: number, end: number): void {
    this.#phase = 'connecting'
    this.#cancelDeadline?.()
    this.#cancelDeadline = undefined
    const request = readConnectRequest(this.#reader.reset(bytes, start, end))
    this.#arrival = new SessionHandshake(this.#core, this, request)
    this.#arrival.start()
  }

  pauseForSession(): void {
    this.#flow.pause(PauseReason.session)
  }

  openSession(session: Session, greeted: () => void): void {
    this.#arrival = undefined
    this.session = session
    this.sessionId = session.id
    this.#phase = 'open'
    this.#core.bindSession(this)
    this.#core.ports.logger.info(
      { ...logContext(this), timeoutMs: session.timeout },
      'A session is connected',
    )
    greeted()
    this.replyWriter.lastOperation = OpCode.createSession
    this.#flow.resume(PauseReason.session)
    const early = this.#early
    this.#early = []
    this.#guard(() => {
      for (const frame of early) if (this.#phase === 'open') this.#request(frame, 0, frame.length)
    })
  }

  // Requests

  #request(bytes: Uint8Array, start: number, end: number): void {
    if (end - start < HEADER_BYTES) return this.destroy('Closed: a request is shorter than its header')
    const reader = this.#reader.reset(bytes, start, end)
    const xid = reader.int()
    const type = reader.int()
    if (type === OpCode.auth || type === OpCode.sasl) return this.#authenticate(xid, type, reader)
    if (!this.#core.satisfiesEnforcedSchemes(this.identities)) {
      this.#error(xid, type, 0, ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH, this.#core.turnTime)
      return this.#endWith(
        'Closed: it has not proved an identity of the schemes that enforce.auth.schemes demands',
      )
    }
    const session = this.session!
    const write = isWrite(type) && !(session.isLocal && type === OpCode.closeSession)
    if (!write && !isRead(type) && type !== OpCode.closeSession) {
      this.#splitter.stop()
      this.#line.push(new QueuedRequest(xid, type, this.#core.turnTime, ErrorCode.UNIMPLEMENTED))
      return this.processQueue()
    }
    if (session.isClosing) return
    this.#core.touchSession(session)
    const startedAt = this.#core.turnTime
    const early = write || type === OpCode.sync
    // A write is prepared at once behind whatever is on its way, but never before a write that is put off itself.
    const now =
      !this.#flow.isBackpressured &&
      (early ? this.#line.canStart(write) : this.#line.length === 0 && !this.#mustWait())
    if (now && write) this.#line.push(this.#submit(xid, type, reader, startedAt))
    else if (now && !early) return this.#read(xid, type, reader, startedAt)
    else {
      const waiting = new QueuedRequest(xid, type, startedAt, ErrorCode.OK, this.identities, early)
      this.#line.pushDeferred(waiting, bytes, start + HEADER_BYTES, end)
      if (this.#line.byteSize > BACKLOG_LIMIT) this.#flow.pause(PauseReason.backlog)
    }
    if (now) this.processQueue()
  }

  /** Hands a write on. Gives what stands for it in the line: something on its way, or its refusal. */
  #submit(xid: number, type: number, reader: Reader, startedAt: number): QueuedRequest {
    const { pipeline: writes } = this.#core
    if (type === OpCode.closeSession) {
      this.#splitter.stop()
      this.#early = []
      if (!writes.closeSession(this.sessionId, xid, this, startedAt))
        this.destroy('Closed: its session cannot be ended here now')
      return new QueuedRequest(xid, type, startedAt)
    }
    const write = { sessionId: this.sessionId, xid, type, identities: this.identities }
    const err = writes.write(write, reader, this, startedAt)
    if (err === ErrorCode.SESSIONMOVED) this.destroy(SESSION_MOVED_REASON)
    return new QueuedRequest(xid, type, startedAt, err)
  }

  /**
   * Answers what is first in line until something there is on its way, or the client does not take its answers. Then begins
   * what was put off and need not wait for its turn.
   */
  processQueue(): void {
    while (!this.#flow.isBackpressured && this.#phase === 'open') {
      if (this.#line.isReady && !this.#mustWait()) this.#serveFirst()
      else if (this.#line.canStartDeferred) this.#beginPutOff()
      else break
    }
    if (this.#line.byteSize <= BACKLOG_LIMIT) this.#flow.resume(PauseReason.backlog)
    this.#line.releaseBuffer()
  }

  /** Whether no read can be answered now: one is being answered, or the tree is halfway between two transactions. */
  #mustWait(): boolean {
    if (this.#core.tree.isApplying) this.#core.deferReads(this)
    return this.#reading.isBusy || this.#core.tree.isApplying
  }

  /** Begins the oldest write or sync that is put off. */
  #beginPutOff(): void {
    const waiting = this.#line.firstDeferred!
    const { xid, type, startedAt, identities } = waiting
    const current = this.identities
    this.identities = identities
    if (type === OpCode.sync) this.#beginSync(waiting)
    else this.#line.replaceDeferred(this.#submit(xid, type, waiting.readBody(this.#reader), startedAt))
    this.identities = current
  }

  #beginSync(waiting: QueuedRequest): void {
    const { xid, type } = waiting
    const { sessionId, identities } = this
    const err = this.#core.pipeline.sync({ sessionId, xid, type, identities }, this)
    this.#line.replaceDeferred(startedSync(waiting, err))
  }

  #serveFirst(): void {
    const first = this.#line.first!
    const { xid, type, startedAt, body, identities, err, canStartEarly: early } = first
    if (early) return this.#beginPutOff()
    if (body === undefined) {
      this.#line.shift()
      // Behind a request that no client may send there is no other.
      const isLast = err === ErrorCode.UNIMPLEMENTED && !isWrite(type)
      this.#error(xid, type, isLast ? -1 : this.#core.tree.lastZxid, err, startedAt)
      return isLast
        ? this.#endWith(`Closed: it sent the op code ${type}, which no client may send`)
        : undefined
    }
    // A write before it has made the session known to all.
    if (type === OpCode.closeSession && !this.session!.isLocal)
      return this.#line.replaceFirst(this.#submit(xid, type, first.readBody(this.#reader), startedAt))
    const current = this.identities
    this.identities = identities
    this.#line.shift()
    this.#read(xid, type, first.readBody(this.#reader), startedAt)
    this.identities = current
  }

  #read(xid: number, type: number, reader: Reader, startedAt: number): void {
    if (type === OpCode.ping && !this.#mayAnswerPing()) return
    if (type === OpCode.closeSession) return this.#endLocal(xid, startedAt)
    this.#reading.execute({ xid, type, startedAt }, reader)
    this.#boundWatches()
  }

  /** Sends a reply that was made in several turns. */
  sendChunkedReply(bytes: Uint8Array): void {
    this.#flow.send(bytes)
    this.#core.scheduleFlush(this)
    this.#boundWatches()
    this.processQueue()
  }

  /** Silence makes a client look elsewhere in time, when its session may be over without this server's knowledge. */
  #mayAnswerPing(): boolean {
    const { isLocal: local, timeout } = this.session!
    return local || this.#core.pipeline.canAnswerPing(timeout, this.#core.turnTime)
  }

  /** The end of a session that only this server knows is no transaction. */
  #endLocal(xid: number, startedAt: number): void {
    const { localSessions: locals, tree, stats } = this.#core
    locals!.remove(this.sessionId)
    const reply = this.replyWriter.beginReply(xid, tree.lastZxid, 0)
    this.#finish(reply, OpCode.closeSession, startedAt, stats.updateLatency)
    this.#endWith('Closed by its client')
  }

  #boundWatches(): void {
    const chars = this.#watched?.chars ?? 0
    if (chars > MAX_WATCHED_PATH_CHARS) this.destroy(`Closed: it watches paths of ${chars} characters`)
  }

  #authenticate(xid: number, type: number, reader: Reader): void {
    this.#authentication ??= new Authentication(this.#core, this)
    const refusal = this.#authentication.handle(xid, type, reader)
    if (refusal !== undefined) this.#endWith(refusal)
  }

  // Replies out

  #finish(mark: number, type: number, startedAt: number, latency: Summary): void {
    this.#replied(this.replyWriter.endFrame(mark), type, startedAt, latency)
  }

  #replied(size: number, type: number, startedAt: number, latency: Summary): void {
    this.replyWriter.recordReply(size, type, startedAt, this.#core.turnTime, latency)
    if (this.replyWriter.isFull) this.flush()
  }

  #error(xid: number, type: number, zxid: Zxid, err: number, startedAt: number): void {
    this.#finish(this.replyWriter.beginReply(xid, zxid, err), type, startedAt, this.#core.stats.readLatency)
  }

  /**
   * Takes what is answered now out of the line; undefined when the client is gone. What is before it goes first, also to a
   * client that is slow: its turn has come.
   */
  #nextInLine(type: number, xid?: number): QueuedRequest | undefined {
    while (this.#phase === 'open' && this.#line.isReady) this.#serveFirst()
    if (this.#phase !== 'open') return undefined
    const first = this.#line.shift()
    if (first?.type === type && (xid === undefined || first.xid === xid)) return first
    const facts = { session: this.sessionId, type, xid, first: first?.xid, firstType: first?.type }
    invariant(false, 'Requests are answered in the order of their session.', facts)
  }

  // Flow and end

  /** Stops reading a client that has writes on their way while the server has too many. */
  #hold(): void {
    if (!this.#core.isOverloaded || this.#line.length === 0) return
    this.#core.stats.requestsThrottled++
    this.#core.throttle(this)
    this.#flow.pause(PauseReason.overload)
  }

  /** The client has taken what there was. */
  onDrain(): void {
    this.#flow.isBackpressured = false
    this.processQueue()
  }

  /** Reads nothing more, sends what there is and closes. */
  #endWith(reason: string): void {
    this.#splitter.stop()
    this.#phase = 'closing'
    this.#endAfterFlush = true
    this.#core.scheduleFlush(this)
    this.#core.ports.logger.debug(logContext(this), reason)
  }

  #end(): void {
    this.#endAfterFlush = false
    this.#flow.end()
    this.#core.ports.clock.after(LINGER_MS, 'client that does not read its last bytes', () => {
      this.#core.runTurn(() => this.destroy('Closed: it did not read its last bytes'))
    })
  }

  /** The connection is gone. */
  onClosed(reason = 'Closed by its client'): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#cancelDeadline?.()
    this.#splitter.stop()
    this.#line.clear()
    this.#early = []
    this.#arrival?.cancel()
    this.#reading.cancel()
    this.#first = undefined
    this.#core.removeConnection(this)
    this.#core.ports.logger.debug(logContext(this), reason)
  }
}
