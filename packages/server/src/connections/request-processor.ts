import { ErrorCode, OpCode, Writer, Xid, type Reader } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import { isRead, isWrite } from '../core/operations/index.ts'
import type { Histogram } from '../core/histogram.ts'
import type { ChunkedReply, ReadCaller } from '../core/reads/index.ts'
import type { Identity, SessionId, SubTxn, Zxid } from '../core/types.ts'
import { recordRead, recordRefusal } from '../audit/index.ts'
import type { AcceptedWrite, ClientOrigin } from '../pipeline/index.ts'
import { Authentication, type AuthenticatingClient } from './authentication.ts'
import type { ChannelRequests, ClientChannel } from './client-channel.ts'
import type { ClientService } from './client-service.ts'
import { LOGIN_MISSING } from './close-cause.ts'
import { BACKLOG_LIMIT, PauseReason } from './flow-control.ts'
import { isSessionMoved, SESSION_MOVED_REASON } from './reply-writer.ts'
import { pathIn } from './request-path.ts'
import {
  isCostly,
  isList,
  QueuedRequest,
  RequestQueue,
  startedSync,
  weightOf,
  type RequestArrival,
  type RequestHeader,
} from './request-queue.ts'
import { MAX_WATCH_BYTES } from './watched-paths.ts'

/** Bytes of the xid and the op code, with which every request begins. */
const HEADER_BYTES = 8

/** A request whose reply is written over several turns: `begunAt` is when its execution began. */
interface ChunkedRequest extends RequestHeader, RequestArrival {
  readonly path: string | undefined
  readonly begunAt: number
}

/** The connection of a request processor. */
export interface RequestClient extends ClientChannel, AuthenticatingClient {
  /** The memory of all watches, in bytes. */
  readonly watchBytes: number
  /** The memory of its identities, in bytes. */
  readonly identityBytes: number
  /** Ignores the frames that follow. */
  stopParsing(): void
}

/**
 * Processes the requests of one session and replies to them in their order. A write is prepared as soon as it is received, and
 * its reply waits until it is applied; a read waits for the earlier requests of its session.
 *
 * A large reply is written over several turns of the event loop, one at a time. Other replies and events of the connection wait
 * behind it, which keeps replies in order and an event behind the reply that set its watch.
 */
export class RequestProcessor implements ChannelRequests, ReadCaller<ClientChannel> {
  readonly #service: ClientService
  readonly #client: RequestClient
  readonly #reader: Reader
  readonly #queue: RequestQueue
  /** The reply that is being written over several turns, and what is left to do for it. */
  #reply: ChunkedReply | undefined
  #steps: Generator<void> | undefined
  /** Holds the bytes of chunked replies; made for the first one. */
  #chunkWriter: Writer | undefined
  #isStepping = false
  #authentication: Authentication | undefined

  /** `reader` reads requests; its state between two calls does not matter. */
  constructor(service: ClientService, client: RequestClient, reader: Reader) {
    this.#service = service
    this.#client = client
    this.#reader = reader
    this.#queue = new RequestQueue(service.bufferPool, service.pipelineRoom, service.lines)
  }

  get origin(): ClientOrigin | undefined {
    return this.#client.origin
  }

  get listener(): ClientChannel {
    return this.#client
  }

  get sessionId(): SessionId {
    return this.#client.sessionId
  }

  get identities(): readonly Identity[] {
    return this.#client.identities
  }

  get length(): number {
    return this.#queue.length
  }

  /** The memory of the waiting requests and of the reply that is being written, in bytes. */
  get byteSize(): number {
    return this.#queue.byteSize + (this.isReplying ? (this.#chunkWriter?.length ?? 0) : 0)
  }

  /** Whether a reply is being written over several turns. Nothing else may be flushed before it. */
  get isReplying(): boolean {
    return this.#steps !== undefined
  }

  /** Drops all requests: the connection is closed. Those in flight leave their room with their results. */
  cancel(): void {
    this.#queue.abandon()
    this.#endChunkedReply()
  }

  /** Adds an event to the reply that has caused it, or to the buffer of the connection. */
  deliver(frame: Uint8Array): void {
    const { replyWriter } = this.#client
    if (!this.#isStepping) return replyWriter.addNotification(frame)
    this.#chunkWriter!.raw(frame)
    replyWriter.countFrame(frame.length)
  }

  /** Handles a request, whose bytes may be read during the call only. Ignores it unless the connection is open. */
  handle(bytes: Uint8Array, start: number, end: number): void {
    if (!this.#isOpen()) return
    const { turnTime, auth } = this.#service
    if (end - start < HEADER_BYTES)
      return this.#client.destroy('protocol', 'Closed: a request is shorter than its header')
    const reader = this.#reader.reset(bytes, start, end)
    const xid = reader.int()
    const type = reader.int()
    const { topRequests } = this.#service
    if (topRequests.isCounting && topRequests.isInSample(turnTime))
      topRequests.received(this.#client, xid, type, bytes, start + HEADER_BYTES, end)
    if (type === OpCode.auth || type === OpCode.sasl) return this.#authenticate(xid, type, reader)
    if (!auth.isSatisfiedBy(this.#client.identities)) {
      this.#replyError(xid, type, 0, ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH, turnTime)
      return this.#client.closeAfterFlush(
        'login',
        'Closed: it has not proved an identity of the schemes that enforce.auth.schemes demands',
      )
    }
    const session = this.#client.session!
    const write = isWrite(type) && !(session.isLocal && type === OpCode.closeSession)
    if (!write && !isRead(type) && type !== OpCode.closeSession) {
      this.#client.stopParsing()
      this.#queue.push(new QueuedRequest(xid, type, turnTime, ErrorCode.UNIMPLEMENTED))
      return this.process()
    }
    if (session.isClosing) return
    // It is the last request, also where it waits: a later write would be applied before the end of a session that is not local any more.
    if (type === OpCode.closeSession) this.#client.stopParsing()
    this.#service.touchSession(session)
    const canStartEarly = write || type === OpCode.sync
    // A write is prepared while earlier requests are in flight, but never before a write that is deferred itself.
    const canStart =
      !this.#client.flow.isBackpressured &&
      (canStartEarly ? this.#queue.canStart(write) : this.#queue.length === 0 && !this.#mustDeferReads()) &&
      this.#isAdmitted(type, end - start, canStartEarly)
    if (canStart && !canStartEarly) return this.#read(xid, type, reader, turnTime)
    const { pipeline } = this.#service
    if (canStart && write) {
      const { outstanding, transactions } = pipeline
      const ahead = this.#queue.length
      const request = this.#submit(xid, type, reader, turnTime)
      // Its session has moved, or cannot be ended here.
      if (!this.#isOpen()) return
      request.arrived(end - start, ahead, outstanding, transactions)
      this.#queue.push(request.started(this.#client.identityBytes))
    } else {
      const { identities } = this.#client
      const request = new QueuedRequest(xid, type, turnTime, ErrorCode.OK, identities, canStartEarly)
      request.arrived(end - start, this.#queue.length, pipeline.outstanding, pipeline.transactions)
      request.weight = weightOf(type, end - start, this.#service.tree.store)
      this.#queue.pushDeferred(request, bytes, start + HEADER_BYTES, end)
      if (this.#queue.byteSize > BACKLOG_LIMIT) {
        this.#client.flow.pause(PauseReason.backlog)
        this.#service.backlogged.add(this.#client)
      }
    }
    if (canStart) this.process()
  }

  /**
   * Handles a request of a client that has to log in before it resumes a session. Refuses all but logins, and closes the connection
   * then. Its bytes may be read during the call only.
   */
  handleBeforeLogin(bytes: Uint8Array, start: number, end: number): void {
    if (end - start < HEADER_BYTES)
      return this.#client.destroy('protocol', 'Closed: a request is shorter than its header')
    const reader = this.#reader.reset(bytes, start, end)
    const xid = reader.int()
    const type = reader.int()
    if (type === OpCode.auth || type === OpCode.sasl) return this.#authenticate(xid, type, reader)
    this.#replyError(xid, type, 0, ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH, this.#service.turnTime)
    this.#client.closeAfterFlush('login', LOGIN_MISSING)
  }

  /**
   * Replies to the oldest requests until one is in flight, the client applies backpressure, or its share of the turn is spent. Then
   * starts the deferred writes and syncs that need not wait for their turn.
   */
  process(): void {
    const { flow } = this.#client
    if (this.#queue.isIdle && !flow.isPausedFor(PauseReason.backlog)) return
    this.#replyBeforeInFlight()
    while (!flow.isBackpressured && this.#isOpen()) {
      const before = this.#unfinishedBytes()
      const first = this.#queue.isReady && !this.#mustDeferReads() ? this.#queue.first : undefined
      const next = first ?? (this.#queue.canStartDeferred ? this.#queue.firstDeferred : undefined)
      if (next === undefined || !this.#isAdmitted(next.type, next.to - next.from, next.canStartEarly)) break
      if (next === first) this.#processFirst()
      else {
        this.#startDeferred()
        this.#replyBeforeInFlight()
      }
      if (this.#queue.length === 0) continue
      if (this.#service.turnShares.isSpent(before - this.#unfinishedBytes())) {
        this.#client.waitForTurn()
        break
      }
    }
    if (this.#queue.byteSize <= BACKLOG_LIMIT && flow.isPausedFor(PauseReason.backlog)) {
      flow.resume(PauseReason.backlog)
      this.#service.backlogged.delete(this.#client)
    }
    this.#queue.releaseBuffers()
  }

  onPart(txn: SubTxn, isApplied: boolean): void {
    if (this.#isOpen()) this.#client.replyWriter.addMultiResult(txn, isApplied)
  }

  onApplied(write: AcceptedWrite, err: number): void {
    if (!this.#isOpen()) return this.#dropResult()
    const { stats, platform } = this.#service
    const { zxid } = write.logged.header
    const isSampled = stats.stages.isSampled(zxid)
    const appliedAt = isSampled ? platform.clock.monotonic() : 0
    if (isSessionMoved(write.logged.txn)) this.#client.destroy('moved', SESSION_MOVED_REASON)
    const request = this.#shiftInFlight(write.type, write.xid)
    if (request === undefined) return
    if (isSampled) stats.stages.applied(zxid, request.startedAt, appliedAt)
    const size = this.#client.replyWriter.writeReply(write, err)
    this.#recordReply(size, write.type, request.startedAt, stats.updateLatency, request, write)
    if (write.type !== OpCode.closeSession) return this.process()
    stats.sessionsClosed++
    this.#client.closeAfterFlush('session_closed', 'Closed by its client')
  }

  onLost({ xid, type }: Pick<AcceptedWrite, 'xid' | 'type'>): void {
    if (type === OpCode.closeSession)
      this.#client.destroy('disk_full', 'Closed: its session could not be ended, the disk is full')
    const request = this.#shiftInFlight(type, xid)
    if (request === undefined) return
    const { lastZxid } = this.#service.tree
    this.#replyError(xid, type, lastZxid, ErrorCode.SYSTEMERROR, request.startedAt, request)
    this.process()
  }

  onSynced(): void {
    const sync = this.#shiftInFlight(OpCode.sync)
    if (sync === undefined) return
    const { stats, turnTime } = this.#service
    stats.syncLatency.add(Math.max(0, turnTime - sync.startedAt))
    this.#read(sync.xid, OpCode.sync, this.#reader.reset(sync.syncBody!), sync.startedAt, sync)
    this.process()
  }

  /**
   * Replies to the reads whose turn it is before a write in flight, whatever share of the turn is left and although the client applies
   * backpressure: the write may be applied next, and they must not see what it changes. `MAX_READS_BEFORE_WRITE` bounds them.
   */
  #replyBeforeInFlight(): void {
    const { tree } = this.#service
    while (this.#isOpen() && this.#queue.isReady && this.#queue.hasInFlight && !tree.isApplying)
      this.#processFirst()
  }

  /** Falls by the bytes of a request that starts, and by those of a reply. */
  #unfinishedBytes(): number {
    return this.#queue.byteSize - this.#service.stats.responseBytes
  }

  #isOpen(): boolean {
    return this.#client.phase === 'open'
  }

  /** Takes the result of a request whose connection is closed. */
  #dropResult(): void {
    this.#service.stats.staleReplies++
    this.#queue.releaseAbandoned()
  }

  /** Submits a write to the pipeline. Returns its place in the queue: a request in flight, or a refused one. */
  #submit(xid: number, type: number, body: Reader, startedAt: number): QueuedRequest {
    const { pipeline, eagerAccess } = this.#service
    const { sessionId, identities } = this.#client
    if (type === OpCode.closeSession) {
      if (!pipeline.closeSession(sessionId, xid, this))
        this.#client.destroy('disk_full', 'Closed: its session cannot be ended here now')
      return new QueuedRequest(xid, type, startedAt)
    }
    const refusal = eagerAccess?.check(type, body, identities) ?? ErrorCode.OK
    if (refusal !== ErrorCode.OK) {
      const { audit } = this.#service
      if (audit !== undefined)
        recordRefusal(audit, { sessionId, xid, type, identities }, body, refusal, this.origin)
      return new QueuedRequest(xid, type, startedAt, refusal)
    }
    const err = pipeline.write({ sessionId, xid, type, identities }, body, this)
    if (err === ErrorCode.SESSIONMOVED) this.#client.destroy('moved', SESSION_MOVED_REASON)
    return new QueuedRequest(xid, type, startedAt, err)
  }

  /** Whether no read can be executed now: a chunked reply is being written, or the tree is inconsistent during an incremental apply. */
  #mustDeferReads(): boolean {
    const { tree, deferredReads } = this.#service
    if (tree.isApplying) deferredReads.add(this.#client)
    return this.isReplying || tree.isApplying
  }

  /** Starts the oldest deferred write or sync. */
  #startDeferred(): void {
    this.#touchSession()
    const request = this.#queue.firstDeferred!
    const { xid, type, startedAt, identities } = request
    const current = this.#client.identities
    this.#client.identities = identities
    if (type === OpCode.sync) this.#startSync(request)
    else {
      const started = this.#submit(xid, type, request.readBody(this.#reader), startedAt)
      this.#queue.replaceDeferred(started.arrivedAs(request).started(this.#client.identityBytes))
    }
    this.#client.identities = current
  }

  #startSync(request: QueuedRequest): void {
    const { xid, type } = request
    const { sessionId, identities } = this.#client
    const err = this.#service.pipeline.sync({ sessionId, xid, type, identities }, this)
    this.#queue.replaceDeferred(startedSync(request, err).started(this.#client.identityBytes))
  }

  /**
   * Extends the session of a request that has waited: its client may be silent until the replies, and its pings wait in the socket while
   * the connection has a backlog.
   */
  #touchSession(): void {
    const { session } = this.#client
    if (session !== undefined && !session.isClosing) this.#service.touchSession(session)
  }

  #processFirst(): void {
    this.#touchSession()
    const first = this.#queue.first!
    const { xid, type, startedAt, body, identities, err, canStartEarly } = first
    if (canStartEarly) return this.#startDeferred()
    if (body === undefined) {
      this.#queue.shift()
      // A request that no client may send closes the connection: nothing is parsed after it.
      const isLast = err === ErrorCode.UNIMPLEMENTED && !isWrite(type)
      this.#replyError(xid, type, isLast ? -1 : this.#service.tree.lastZxid, err, startedAt, first)
      return isLast
        ? this.#client.closeAfterFlush(
            'protocol',
            `Closed: it sent the op code ${type}, which no client may send`,
          )
        : undefined
    }
    // A write before it may have made the local session a global one, whose end is a transaction.
    if (type === OpCode.closeSession && !this.#client.session!.isLocal)
      return this.#queue.replaceFirst(
        this.#submit(xid, type, first.readBody(this.#reader), startedAt).arrivedAs(first),
      )
    const current = this.#client.identities
    this.#client.identities = identities
    this.#queue.shift()
    this.#service.lines.answered(this.#service.turnTime - startedAt)
    this.#read(xid, type, first.readBody(this.#reader), startedAt, first)
    this.#client.identities = current
  }

  /** `queued` is the request if it has waited: one that is answered at once has no object of its own. */
  #read(xid: number, type: number, body: Reader, startedAt: number, queued?: QueuedRequest): void {
    if (type === OpCode.ping && !this.#canAnswerPing()) return
    if (type === OpCode.closeSession) return this.#closeLocalSession(xid, startedAt, queued)
    if (isList(type)) this.#service.turnShares.checkNext()
    this.#execute({ xid, type, startedAt }, body, queued)
    this.#limitWatches()
  }

  /**
   * Whether a request may be executed now; else its connection waits for a later turn, or for room in the pipeline. `entersPipeline` says
   * whether it is submitted: one that has its result must not wait for room that others of its kind hold.
   */
  #isAdmitted(type: number, bytes: number, entersPipeline: boolean): boolean {
    const { pipelineRoom, turnShares } = this.#service
    if (entersPipeline && !pipelineRoom.admits(this.#client)) return false
    // A turn for room is one for time too: a large write could else wait for the one and miss the other, for ever.
    if ((entersPipeline && pipelineRoom.isWaking) || !isCostly(type, bytes) || turnShares.admitsCostly())
      return true
    this.#client.waitForTurn()
    return false
  }

  // Reads

  /** Writes the reply to a read, or begins to write it in chunks. */
  #execute(request: RequestHeader, body: Reader, queued: QueuedRequest | undefined): void {
    const { xid, type } = request
    const { scratch, tree } = this.#service
    const { replyWriter } = this.#client
    const zxid = tree.lastZxid
    if (type === OpCode.setWatches || type === OpCode.setWatches2) {
      // Events that the client has missed are sent before the reply, which has no body.
      const result = this.#begin(type, body, scratch)
      if (typeof result !== 'number')
        return this.#startChunkedReply(this.#withPath(request, body, queued), zxid, result)
      return this.#endRead(replyWriter.beginReply(xid, zxid, result), request, queued)
    }
    const mark = replyWriter.beginReply(type === OpCode.ping ? Xid.ping : xid, zxid, 0)
    const { offset } = body
    const result = this.#begin(type, body, replyWriter.writer)
    this.#recordRead(request, body, offset, result)
    if (typeof result !== 'number') {
      replyWriter.writer.truncate(mark)
      return this.#startChunkedReply(this.#withPath(request, body, queued), zxid, result)
    }
    if (result !== 0) replyWriter.setError(mark, result)
    this.#endRead(mark, request, queued)
  }

  /** Records a read whose result is known, or which is permitted. */
  #recordRead(
    { xid, type }: RequestHeader,
    body: Reader,
    offset: number,
    result: number | ChunkedReply,
  ): void {
    const { audit } = this.#service
    if (audit === undefined || (audit.readPaths.isEmpty && result !== ErrorCode.NOAUTH)) return
    body.offset = offset
    const { sessionId, identities, origin } = this
    recordRead(
      audit,
      { sessionId, xid, type, identities },
      body,
      typeof result === 'number' ? result : 0,
      origin,
    )
  }

  /** Executes a read. Returns its error number, or a chunked reply unless one is being written already. */
  #begin(type: number, body: Reader, writer: Writer): number | ChunkedReply {
    const { reads } = this.#service
    return this.isReplying ? reads.execute(type, body, writer, this) : reads.begin(type, body, writer, this)
  }

  #endRead(mark: number, { type, startedAt }: RequestHeader, queued: QueuedRequest | undefined): void {
    this.#endReply(mark, type, startedAt, this.#service.stats.readLatency, queued)
  }

  /** Returns what is reported of a request whose reply takes several turns, if it is slow: its body is gone by then. */
  #withPath(request: RequestHeader, body: Reader, queued: QueuedRequest | undefined): ChunkedRequest {
    const { xid, type, startedAt } = request
    const { turnTime, pipeline } = this.#service
    const from = queued === undefined ? body.start + HEADER_BYTES : body.start
    const arrived =
      queued ??
      new QueuedRequest(xid, type, startedAt).arrived(
        body.end - from + HEADER_BYTES,
        0,
        pipeline.outstanding,
        pipeline.transactions,
      )
    const { requestBytes, ahead, outstanding, transactions } = arrived
    const path = pathIn(type, body.bytes, from, body.end)
    return { xid, type, startedAt, begunAt: turnTime, path, requestBytes, ahead, outstanding, transactions }
  }

  #startChunkedReply(request: ChunkedRequest, zxid: Zxid, reply: ChunkedReply): void {
    this.#client.flush()
    this.#reply = reply
    this.#steps = this.#writeChunkedReply(request, zxid, reply)
    this.#service.slicedWork.add(() => this.#step())
  }

  *#writeChunkedReply(request: ChunkedRequest, zxid: Zxid, reply: ChunkedReply): Generator<void> {
    const { xid } = request
    const writer = (this.#chunkWriter ??= new Writer(1 << 16))
    const { replyWriter } = this.#client
    const begin = reply.hasNotifications ? -1 : replyWriter.beginReplyIn(writer, xid, zxid, 0)
    const err = yield* reply.write(writer)
    const { turnTime, stats, tree } = this.#service
    const mark = begin === -1 ? replyWriter.beginReplyIn(writer, xid, tree.lastZxid, 0) : begin
    // Other replies of the connection may have been written since this one began.
    replyWriter.setErrorIn(writer, mark, err ?? 0)
    writer.endFrame(mark)
    replyWriter.countFrame(writer.length - mark)
    const { type, startedAt } = request
    replyWriter.recordReply(writer.length - mark, type, startedAt, turnTime, stats.readLatency, request)
  }

  /** Returns whether more steps follow. */
  #step(): boolean {
    const steps = this.#steps
    if (steps === undefined) return false
    this.#isStepping = true
    const isDone = steps.next().done === true
    this.#isStepping = false
    this.#client.countMemory()
    // The count may have closed the connection.
    if (this.#steps === undefined) return false
    if (!isDone) return true
    this.#endChunkedReply()
    this.#client.flow.send(this.#chunkWriter!.take())
    this.#service.flushQueue.add(this.#client)
    this.#limitWatches()
    this.process()
    return false
  }

  /** Releases the chunked reply, whether it is complete or not. */
  #endChunkedReply(): void {
    this.#reply?.dispose?.()
    this.#reply = this.#steps = undefined
  }

  /**
   * Whether to reply to a ping. Without replies the client connects to another server, in case the leader has expired its session
   * and this server has not learned of it.
   */
  #canAnswerPing(): boolean {
    const { isLocal, timeout } = this.#client.session!
    return isLocal || this.#service.pipeline.canAnswerPing(timeout, this.#service.turnTime)
  }

  /** Ends a local session, which needs no transaction. */
  #closeLocalSession(xid: number, startedAt: number, queued: QueuedRequest | undefined): void {
    const { localSessions, tree, stats } = this.#service
    const { sessionId, host, origin } = this.#client
    localSessions!.remove(sessionId)
    this.#service.audit?.record({
      category: 'sessions',
      operation: 'sessionClose',
      result: 'success',
      session: sessionId,
      ip: host,
      origin,
      via: 'zk',
    })
    stats.sessionsClosed++
    const mark = this.#client.replyWriter.beginReply(xid, tree.lastZxid, 0)
    this.#endReply(mark, OpCode.closeSession, startedAt, stats.updateLatency, queued)
    this.#client.closeAfterFlush('session_closed', 'Closed by its client')
  }

  #limitWatches(): void {
    if (this.#client.watchBytes > MAX_WATCH_BYTES)
      this.#client.destroy('memory', `Closed: its watches take more than ${MAX_WATCH_BYTES} bytes`)
  }

  #authenticate(xid: number, type: number, body: Reader): void {
    this.#service.turnShares.checkNext()
    this.#authentication ??= new Authentication(this.#service, this.#client)
    const closing = this.#authentication.handle(xid, type, body)
    if (closing !== undefined) this.#client.closeAfterFlush('login', closing.reason, closing.context)
  }

  #endReply(
    mark: number,
    type: number,
    startedAt: number,
    latency: Histogram,
    queued: QueuedRequest | undefined,
  ): void {
    this.#recordReply(this.#client.replyWriter.endFrame(mark), type, startedAt, latency, queued)
  }

  #recordReply(
    size: number,
    type: number,
    startedAt: number,
    latency: Histogram,
    queued: QueuedRequest | undefined,
    write?: AcceptedWrite,
  ): void {
    const { replyWriter } = this.#client
    replyWriter.recordReply(size, type, startedAt, this.#service.turnTime, latency, queued, write)
    if (!replyWriter.isFull) return
    this.#client.flush()
    this.#service.turnShares.checkNext()
  }

  #replyError(
    xid: number,
    type: number,
    zxid: Zxid,
    err: number,
    startedAt: number,
    queued?: QueuedRequest,
  ): void {
    const mark = this.#client.replyWriter.beginReply(xid, zxid, err)
    this.#endReply(mark, type, startedAt, this.#service.stats.readLatency, queued)
  }

  /**
   * Removes and returns the request in flight whose result has arrived; undefined, once it has left its room, when the connection is
   * closed. Replies to the requests before it first, despite backpressure, since replies must keep their order.
   */
  #shiftInFlight(type: number, xid?: number): QueuedRequest | undefined {
    while (this.#isOpen() && this.#queue.isReady) this.#processFirst()
    if (!this.#isOpen()) {
      this.#dropResult()
      return undefined
    }
    const first = this.#queue.shift()
    if (first?.type === type && (xid === undefined || first.xid === xid)) return first
    const { sessionId: session } = this.#client
    const fields = { session, type, xid, first: first?.xid, firstType: first?.type }
    invariant(false, 'Requests are answered in the order of their session.', fields)
  }
}
