import { ErrorCode, ProtocolError, type Reader } from '@zabra/protocol'
import {
  abortError,
  AuthFailedError,
  type ConnectionLossError,
  connectionLossError,
  terminalErrorFor,
  unreadableReplyError,
  type ErrorContext,
  type ZooKeeperError,
} from '../errors.ts'
import { errorOf } from '../error-of.ts'
import type { ServerAddress } from '../platform.ts'
import type { BatchedReply, ReadBatcher } from './read-batcher.ts'
import { CallLimits } from './call-limits.ts'
import { captureCallSite, setCallerStack } from './call-site.ts'
import { RequestPool } from './request-pool.ts'
import { RetryQueue } from './retry-queue.ts'
import { allowsRetry, isWithinLimits, retryPolicyOf } from './retry-policy.ts'
import {
  replyError,
  errorContextOf,
  invalidArgumentsError,
  requestInfoOf,
  requestTooLongError,
} from './request-info.ts'
import type { Lease } from './lease.ts'
import { observeRequest } from './observe.ts'
import type { SessionOptions } from './options.ts'
import { retryableCodes, ambiguousCodes, readReplyZxid } from './error-codes.ts'
import {
  EMPTY_REQUEST_LIST,
  createPromise,
  leaveBatch,
  RequestList,
  resetAttempts,
  type AmbiguityResolver,
  type Operation,
  type PendingRequest,
} from './pending-request.ts'
import type { FramedConnection } from './framed-connection.ts'
import type { ClientStats } from '../client-api.ts'

const LAST_XID = 0x7fff_ffff
/** Replies over which the latency is averaged, as TCP does with round trips. */
const LATENCY_WINDOW = 8
/** A request that was first in flight at this many consecutive connection losses may be what breaks the connection. */
const MAX_HEAD_LOSSES = 5
const NOT_IN_TIME = 'no connection was established in time'

const isOrderedWrite = ({ operation, isUnordered }: PendingRequest): boolean =>
  operation.isWrite && !isUnordered

/** The session that a dispatcher belongs to. */
export interface RequestOwner {
  readonly lease: Lease
  /** The error with which a call rejects at once, when the client is closing or closed. */
  readonly callRejection: ZooKeeperError | undefined
  /** The error that has closed the client. */
  readonly terminalError: ZooKeeperError | undefined
  readonly sessionId: bigint
  /** Returns the next order number. */
  nextOrder(): number
  /** The server reported that the session has moved to another server. */
  onSessionMoved(): void
  /** The server rejected the credentials of this client, or requires some. */
  onAuthFailed(error: AuthFailedError): void
}

/**
 * Sends requests and settles their calls: pipelines them on the current connection, queues them while there is none,
 * and retries where that is safe.
 */
export class RequestDispatcher implements AmbiguityResolver {
  readonly #options: SessionOptions
  readonly #owner: RequestOwner
  #connection: FramedConnection | undefined
  /** The connection that has requests in flight, also after sending has paused. */
  #inFlightConnection: FramedConnection | undefined
  #readOnly = false
  #inFlight = EMPTY_REQUEST_LIST
  #offlineQueue = EMPTY_REQUEST_LIST
  #awaitingReadWrite: RequestList | undefined
  #retryQueue: RetryQueue | undefined
  #limits: CallLimits | undefined
  readonly #pool = new RequestPool()
  #xid = 0
  #server: ServerAddress | undefined
  /** When the first request of the current write buffer was added. */
  #gatheringSince = 0
  /** Called once, when no request is in flight. */
  #onIdle: (() => void) | undefined
  /** Whether the decode error that breaks the connection has already rejected its request. */
  #isDecodeErrorReported = false
  /** Requests sent, batches counted as one, and replies received. */
  #sent = 0
  #received = 0
  /** Milliseconds from a request to its reply, as a moving average. */
  #latencyMs: number | undefined
  /** Whether the current connection has delivered any reply. */
  hasReceivedReply = false
  /** Set only with `batchReads`. */
  readonly #batcher: ReadBatcher | undefined

  /** `Batcher` is there if the options need it. */
  constructor(options: SessionOptions, owner: RequestOwner, Batcher: typeof ReadBatcher | undefined) {
    this.#options = options
    this.#owner = owner
    if (options.batchReads > 0) this.#batcher = new Batcher!(options, owner)
  }

  get sessionId(): bigint {
    return this.#owner.sessionId
  }

  /** Returns the counts that `Client.stats` shows, without those of the connection. */
  get stats(): Omit<ClientStats, 'sentBytes' | 'receivedBytes' | 'reconnects'> {
    return {
      inFlight: this.#inFlight.length,
      waiting:
        this.#offlineQueue.length + (this.#awaitingReadWrite?.length ?? 0) + (this.#retryQueue?.length ?? 0),
      sent: this.#sent,
      received: this.#received,
      latencyMs: this.#latencyMs,
    }
  }

  /** The operation of the oldest request in flight, to which the server replies next. */
  get nextToReply(): Operation | undefined {
    return this.#inFlight.head?.operation
  }

  /** Returns a request to fill in and submit. */
  acquire(operation: Operation): PendingRequest {
    return this.#pool.acquire(operation)
  }

  /** Sends a request, or queues it until that is possible. */
  submit<T>(request: PendingRequest): Promise<T> {
    const promise = createPromise<T>(request)
    request.startedAt = this.#now()
    if (this.#options.callerStacks) request.callSite = captureCallSite()
    const { instrumentation, redactPath } = this.#options
    if (instrumentation?.request !== undefined) {
      request.onEnd = observeRequest(
        instrumentation,
        () => requestInfoOf(request, this.#server, redactPath),
        redactPath,
      )
    }
    const { callRejection } = this.#owner
    if (callRejection !== undefined) {
      // With a caller stack each call needs an error of its own.
      const error =
        request.callSite === undefined
          ? callRejection
          : terminalErrorFor(callRejection, errorContextOf(request))
      this.#reject(request, error)
      return promise
    }
    if (request.options !== undefined) {
      this.#limits ??= new CallLimits(this.#options.clock, (limited, reason) =>
        this.#abandon(limited, reason),
      )
      const error = this.#limits.arm(request)
      if (error !== undefined) {
        this.#reject(request, error)
        return promise
      }
    }
    this.#dispatch(request)
    return promise
  }

  /** Starts sending on a connection that is established and initialised; sends the queued requests. */
  attach(connection: FramedConnection, readOnly: boolean, server: ServerAddress): void {
    this.#connection = this.#inFlightConnection = connection
    this.#readOnly = readOnly
    this.#server = server
    this.hasReceivedReply = false
    // Requests that a read-only server rejected are older than those in the offline queue.
    const rejected = readOnly ? undefined : this.#awaitingReadWrite?.drain()
    if (rejected === undefined && this.#offlineQueue.length === 0) return
    const waiting = [...(rejected ?? []), ...this.#offlineQueue.drain()]
    let hasRejectedWrite = false
    for (const request of waiting) {
      const isTooLate = request.attempts > 0 && !isWithinLimits(request, this.#options.retry, this.#now())
      if (isTooLate || (hasRejectedWrite && isOrderedWrite(request))) {
        hasRejectedWrite ||= isOrderedWrite(request)
        this.#rejectWithLoss(request, NOT_IN_TIME)
      } else this.#sendOrQueue(request)
    }
  }

  /** Stops sending; requests in flight may still be answered. */
  pauseSending(): void {
    this.#connection = undefined
  }

  /** Resumes sending on the current connection. */
  resumeSending(): void {
    this.#onIdle = undefined
    const connection = this.#inFlightConnection
    if (connection?.isOpen !== true) return
    this.#connection = connection
    for (const request of this.#offlineQueue.drain()) this.#sendOrQueue(request)
  }

  /** Calls `action` as soon as no request is in flight. */
  whenIdle(action: () => void): void {
    this.#onIdle = action
    this.#checkIdle()
  }

  /**
   * Handles a connection loss. Requests that can be retried wait for the next connection, in order; the others are
   * rejected. After a rejected write, the writes behind it are rejected too, save unordered ones: no client may see a
   * later write applied without an earlier one.
   */
  detach(cause: Error): void {
    const head = this.#inFlight.head
    if (head !== undefined && head.xid !== 0) head.headLosses++
    if (head?.isBatched && this.#hasBeenFlushed(head)) this.#batcher!.onConnectionLoss()
    const culprit = cause instanceof ProtocolError && !this.#isDecodeErrorReported ? head : undefined
    const culpritXid = culprit?.xid
    this.#isDecodeErrorReported = false
    const requests = this.#inFlight.drain()
    const queued = this.#offlineQueue.drain()
    for (const request of requests) {
      request.isAmbiguous ||= this.#hasBeenFlushed(request)
      // Which read of the batch was at fault is not known yet.
      if (request.isBatched && request.xid === culpritXid) resetAttempts(request)
      leaveBatch(request)
    }
    this.#connection = this.#inFlightConnection = undefined
    this.#onIdle = undefined
    let hasRejectedWrite = false
    for (const request of [...requests, ...queued]) {
      const canRetry =
        request.attempts === 0 ||
        // Its retry was allowed when it was queued or put back.
        request.xid === 0 ||
        (request !== culprit &&
          request.headLosses < MAX_HEAD_LOSSES &&
          (!request.isAmbiguous || request.operation.isIdempotent(request)) &&
          this.mayRetry(request, () => this.#lossError(request, undefined, cause)))
      if (canRetry && !(hasRejectedWrite && isOrderedWrite(request))) {
        request.xid = 0
        this.#enqueueOffline(request)
        continue
      }
      hasRejectedWrite ||= isOrderedWrite(request)
      if (request === culprit) {
        this.#reject(request, unreadableReplyError({ ...this.errorContext(request), cause: cause! }))
      } else this.#rejectWithLoss(request, undefined, cause)
    }
  }

  /** Rejects all requests without a reply. */
  failAll(error: (request: PendingRequest) => ZooKeeperError): void {
    const requests = this.#inFlight.drain()
    // Before any observer runs, which may abort one of the others.
    for (const request of requests) request.isAmbiguous ||= this.#hasBeenFlushed(request)
    for (const request of requests) this.#reject(request, error(request))
    this.#connection = this.#inFlightConnection = undefined
    this.#onIdle = undefined
    this.#batcher?.reset()
    for (const queue of [this.#awaitingReadWrite, this.#offlineQueue, this.#retryQueue]) {
      for (const request of queue?.drain() ?? []) this.#reject(request, error(request))
    }
  }

  /** Returns the error properties of a request. */
  errorContext(request: PendingRequest): ErrorContext {
    return {
      ...errorContextOf(request),
      maybeApplied: request.operation.isWrite && (request.isAmbiguous || this.#hasBeenFlushed(request)),
    }
  }

  /** Handles the reply to the oldest request in flight. Throws if it belongs to another one. */
  onReply(reader: Reader, xid: number, code: number, order: number): void {
    const request = this.#inFlight.head
    if (request === undefined || request.xid !== xid) {
      throw new Error(
        `Expected the reply to request ${request?.xid ?? 'none'}, got the reply to ${xid}: the stream of replies is broken`,
      )
    }
    this.#countReply(request)
    if (request.isBatched) return this.#onBatchReply(request, reader, code)
    this.#inFlight.shift()
    this.hasReceivedReply = true
    const evidence = request.operation.isWrite && code === 0 ? 'commit' : 'contact'
    if (!this.#readOnly) this.#owner.lease.onReply(request.sentAt, evidence)
    if (code === 0) this.#onSuccess(request, reader, order)
    else this.onErrorReply(request, code, order)
    if (this.#onIdle !== undefined) this.#checkIdle()
  }

  #countReply({ sentAt }: PendingRequest): void {
    this.#received++
    const latencyMs = Math.max(0, this.#inFlightConnection!.lastReceivedAt - sentAt)
    this.#latencyMs =
      this.#latencyMs === undefined
        ? latencyMs
        : this.#latencyMs + (latencyMs - this.#latencyMs) / LATENCY_WINDOW
  }

  /** Handles the reply to a batch: each request succeeds or fails as it would have on its own. */
  #onBatchReply(first: PendingRequest, reader: Reader, code: number): void {
    const { sentAt } = first
    const reply = code === 0 ? this.#batcher!.read(reader, first) : undefined
    this.hasReceivedReply = true
    if (!this.#readOnly) this.#owner.lease.onReply(sentAt, 'contact')
    if (reply === undefined) this.#batcher!.onErrorReply(this.#inFlight, code, this)
    else this.#batcher!.settle(this.#inFlight, reply, this)
    if (this.#onIdle !== undefined) this.#checkIdle()
  }

  /** Sets the last xid, for tests of the wraparound. */
  setLastXid(xid: number): void {
    this.#xid = xid
  }

  /** Resolves a request that `Operation.resolveAmbiguous` has taken over. */
  resolveTakenOver(request: PendingRequest, value: unknown): void {
    this.resolveBatched(request, value, { replyBytes: 0 })
  }

  /** Resolves a request of a batch. */
  resolveBatched(request: PendingRequest, value: unknown, reply: BatchedReply): void {
    request.onEnd?.({ requestBytes: request.requestBytes, ...reply })
    this.#resolve(request, value)
  }

  rejectBatched(request: PendingRequest, error: ZooKeeperError): void {
    this.#reject(request, error, true)
  }

  putBack(request: PendingRequest): void {
    if (!this.#rejectEnded(request)) this.#inFlight.unshift(request)
  }

  rejectTakenOver(request: PendingRequest, error: ZooKeeperError): void {
    this.#reject(request, error)
  }

  #onSuccess(request: PendingRequest, reader: Reader, order: number): void {
    const start = reader.offset
    let value: unknown
    try {
      value = request.operation.decode(reader, request, order)
    } catch (cause) {
      // The caller gets the error, and the connection ends: no data after a malformed reply can be trusted.
      this.#isDecodeErrorReported = true
      const context = {
        ...errorContextOf(request),
        maybeApplied: request.operation.isWrite,
        cause: errorOf(cause),
      }
      this.#reject(request, unreadableReplyError(context))
      throw cause
    }
    request.operation.onReply?.(request, 0)
    this.#batcher?.onSingleReply(request, reader.end - start)
    request.onEnd?.({
      requestBytes: request.requestBytes,
      replyBytes: reader.end - start,
      zxid: readReplyZxid(reader),
    })
    this.#resolve(request, value)
  }

  /** Handles an error reply to a request that is no longer in flight. */
  onErrorReply(request: PendingRequest, code: number, order: number): void {
    const recovered = request.operation.recover?.(request, code, order)
    if (recovered !== undefined) {
      request.operation.onReply?.(request, code)
      request.onEnd?.({ requestBytes: request.requestBytes, replyBytes: 0 })
      return this.#resolve(request, recovered.value)
    }
    const isOutcomeUnknown = ambiguousCodes.has(code)
    request.isAmbiguous ||= isOutcomeUnknown && request.operation.isWrite
    // Any other error means that this try was not applied.
    request.xid = 0
    const mayRetry = (): boolean => this.mayRetry(request, () => this.#replyError(request, code))
    if (code === ErrorCode.SESSIONMOVED && mayRetry()) {
      this.putBack(request)
      return this.#owner.onSessionMoved()
    }
    if (
      (retryableCodes.has(code) || (isOutcomeUnknown && request.operation.isIdempotent(request))) &&
      mayRetry()
    ) {
      if (this.#rejectEnded(request)) return
      this.#retryQueue ??= new RetryQueue(this.#options, (waiting) => this.#dispatch(waiting))
      return this.#retryQueue.add(request)
    }
    if (code === ErrorCode.NOTREADONLY && request.options?.waitForReadWrite && !request.isAbandoned) {
      // To wait for another server is no retry, and has no limits but those of the call.
      resetAttempts(request)
      this.#awaitingReadWrite ??= new RequestList()
      return this.#awaitingReadWrite.push(request)
    }
    if (request.isAmbiguous && request.operation.resolveAmbiguous?.(request, code, this)) return
    if (!request.isAbandoned && request.operation.explainError?.(request, code, this)) return
    request.operation.onReply?.(request, code)
    const error = this.#replyError(request, code)
    this.#reject(request, error, true)
    if (error instanceof AuthFailedError) this.#owner.onAuthFailed(error)
    if (code === ErrorCode.SESSIONMOVED) this.#owner.onSessionMoved()
  }

  #replyError(request: PendingRequest, code: number): ZooKeeperError {
    return replyError(request, code, this.errorContext(request), this.#owner.sessionId)
  }

  #rejectWithLoss(request: PendingRequest, reason: string | undefined, cause?: Error): void {
    this.#reject(request, this.#lossError(request, reason, cause))
  }

  #lossError(request: PendingRequest, reason: string | undefined, cause?: Error): ConnectionLossError {
    return connectionLossError({ ...this.errorContext(request), reason, cause })
  }

  /** Sends a request, or queues it while there is no connection. */
  #dispatch(request: PendingRequest): void {
    if (this.#connection !== undefined) return this.#send(request)
    // While a connection exists the queue drains soon, so it has no limit.
    const { offlineQueue } = this.#options
    if (this.#inFlightConnection === undefined && this.#offlineQueue.length >= offlineQueue) {
      return this.#rejectWithLoss(
        request,
        `there is no connection, and ${this.#offlineQueue.length} requests are queued already`,
      )
    }
    this.#enqueueOffline(request)
  }

  #sendOrQueue(request: PendingRequest): void {
    if (this.#connection === undefined || request.isAbandoned) this.#enqueueOffline(request)
    else this.#send(request)
  }

  #enqueueOffline(request: PendingRequest): void {
    if (this.#rejectEnded(request)) return
    this.#limitRetryTime(request)
    if (this.#offlineQueue === EMPTY_REQUEST_LIST) this.#offlineQueue = new RequestList()
    this.#offlineQueue.push(request)
  }

  /**
   * Rejects a request that must not wait, and returns whether it is one. An observer or a retry function may close the client
   * or abort calls while requests are between two lists: nothing else would end their wait.
   */
  #rejectEnded(request: PendingRequest): boolean {
    const { terminalError } = this.#owner
    if (terminalError === undefined && !request.isAbandoned) return false
    const context = this.errorContext(request)
    const error =
      terminalError === undefined ? abortError(undefined, context) : terminalErrorFor(terminalError, context)
    this.#reject(request, error)
    return true
  }

  #send(request: PendingRequest): void {
    const connection = this.#connection!
    if (this.#batcher?.tryAppend(request, connection) !== true && !this.#write(request, connection)) return
    request.cancelRetry?.()
    request.cancelRetry = undefined
    request.flushesBefore = connection.flushCount
    request.attempts++
    request.sentAt = this.#now()
    if (this.#inFlight === EMPTY_REQUEST_LIST) this.#inFlight = new RequestList()
    this.#inFlight.push(request)
    connection.schedule()
  }

  /** Writes a request in a frame of its own. Returns false if it cannot be sent and was rejected. */
  #write(request: PendingRequest, connection: FramedConnection): boolean {
    const { writer } = connection
    const frameStart = writer.beginFrame()
    this.#xid = this.#xid === LAST_XID ? 1 : this.#xid + 1
    try {
      writer.int(this.#xid)
      writer.int(request.operation.opCode)
      request.operation.encode(writer, request)
    } catch (cause) {
      writer.truncate(frameStart)
      this.#reject(request, invalidArgumentsError(request, cause))
      return false
    }
    writer.endFrame(frameStart)
    request.requestBytes = writer.length - frameStart
    if (request.requestBytes - 4 > this.#options.maxRequestBytes) {
      writer.truncate(frameStart)
      this.#reject(request, requestTooLongError(request, this.#options.maxRequestBytes))
      return false
    }
    request.xid = this.#xid
    this.#sent++
    this.#batcher?.begin(request, connection, frameStart)
    return true
  }

  /** Returns whether a request in flight has been passed to the transport. */
  #hasBeenFlushed(request: PendingRequest): boolean {
    return (
      request.xid !== 0 &&
      this.#inFlightConnection !== undefined &&
      this.#inFlightConnection.flushCount > request.flushesBefore
    )
  }

  /**
   * Rejects a call whose caller has given up. A request in flight, or sent in this turn, stays in the list: its reply
   * will arrive.
   */
  #abandon(request: PendingRequest, reason: unknown): void {
    if (request.list !== undefined && request.list !== this.#inFlight) {
      request.list.remove(request)
      return this.#reject(request, abortError(reason, this.errorContext(request)))
    }
    // A request in no list was answered or never sent, unless an earlier try made it ambiguous.
    const isOutcomeUnknown = request.list !== undefined || request.isAmbiguous
    const maybeApplied = request.operation.isWrite && isOutcomeUnknown
    const error = abortError(reason, { ...errorContextOf(request), maybeApplied })
    request.isAbandoned = true
    this.#disarm(request)
    if (request.callSite !== undefined) setCallerStack(error, request.callSite)
    request.onEnd?.({ error, requestBytes: request.requestBytes, replyBytes: 0 })
    request.onEnd = undefined
    request.reject(error)
  }

  /** The time spent waiting for a connection counts towards `maxElapsed`. */
  #limitRetryTime(request: PendingRequest): void {
    const { maxElapsedMs: maxElapsed } = retryPolicyOf(request, this.#options.retry)
    if (request.attempts === 0 || maxElapsed === undefined) return
    const left = Math.max(0, request.startedAt + maxElapsed - this.#now())
    // A connection may break before it takes the requests, during a login: a timer is there already.
    request.cancelRetry?.()
    request.cancelRetry = this.#options.clock.after(
      left,
      `end of retries of ${request.operation.name}`,
      () => {
        request.cancelRetry = undefined
        this.#rejectWaiting(request)
      },
    )
  }

  /** Rejects a request that no connection took in time, and as `detach` does the writes behind it. */
  #rejectWaiting(request: PendingRequest): void {
    if (request.list !== this.#offlineQueue) return
    const rejected = [request]
    if (isOrderedWrite(request))
      for (let behind = request.next; behind !== undefined; behind = behind.next)
        if (isOrderedWrite(behind)) rejected.push(behind)
    // All leave the queue first: an observer of one may abort another, which would be used for another call then.
    for (const each of rejected) this.#offlineQueue.remove(each)
    for (const each of rejected) this.#rejectWithLoss(each, NOT_IN_TIME)
  }

  /** Returns whether the limits of the caller, or its function, allow another attempt after `error`. */
  mayRetry(request: PendingRequest, error: () => ZooKeeperError): boolean {
    const { retry } = this.#options
    return isWithinLimits(request, retry, this.#now()) && allowsRetry(request, retry, error)
  }

  #resolve(request: PendingRequest, value: unknown): void {
    if (request.options !== undefined) this.#disarm(request)
    request.resolve(value as never)
    this.#pool.release(request)
  }

  /** `hasReply` says that `onReply` of the operation was called. */
  #reject(request: PendingRequest, error: ZooKeeperError, hasReply = false): void {
    this.#disarm(request)
    if (!hasReply) request.operation.onDrop?.(request)
    if (request.callSite !== undefined) setCallerStack(error, request.callSite)
    request.onEnd?.({ error, requestBytes: request.requestBytes, replyBytes: 0 })
    request.reject(error)
    this.#pool.release(request)
  }

  /** Removes the timers and the signal listener of a request. */
  #disarm(request: PendingRequest): void {
    this.#limits?.disarm(request)
    request.cancelRetry?.()
    request.cancelRetry = undefined
  }

  /**
   * Returns when the requests of the current write buffer began to collect, in this turn: never later than their send time, nor
   * much earlier than the call.
   */
  #now(): number {
    const connection = this.#connection
    if (
      connection === undefined ||
      !connection.gathersFrames ||
      this.#gatheringSince < connection.lastSentAt
    ) {
      this.#gatheringSince = this.#options.clock.monotonic()
    }
    return this.#gatheringSince
  }

  #checkIdle(): void {
    if (this.#inFlight.length > 0 || this.#onIdle === undefined) return
    const idle = this.#onIdle
    this.#onIdle = undefined
    idle()
  }
}
