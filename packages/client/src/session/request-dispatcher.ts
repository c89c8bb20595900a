import { ErrorCode, ProtocolError, type Reader } from '@zabra/protocol'
import {
  abortError,
  AuthFailedError,
  connectionLossError,
  terminalErrorFor,
  errorFromCode,
  UsageError,
  type ErrorContext,
  type ZooKeeperError,
} from '../errors.ts'
import { randomFraction } from '../servers/host-provider.ts'
import type { RetryPolicy, ServerAddress } from '../types.ts'
import { ReadBatcher, resetAttempts, leaveBatch } from './read-batcher.ts'
import { captureCallSite, setCallerStack } from './call-site.ts'
import {
  replyError,
  errorContextOf,
  requestInfoOf,
  requestTooLongError,
  checkCallLimits,
} from './request-info.ts'
import type { Lease } from './lease.ts'
import { observeRequest } from './observe.ts'
import type { SessionOptions } from './options.ts'
import { SignalListeners } from './signal-listeners.ts'
import { retryableCodes, ambiguousCodes, readReplyZxid } from './error-codes.ts'
import {
  EMPTY_REQUEST_LIST,
  createPromise,
  PendingRequest,
  RequestList,
  type Operation,
} from './pending-request.ts'
import type { FramedConnection } from './framed-connection.ts'

/** Slots that wait to be used again. More are left to the garbage collector. */
const POOL_SIZE = 1024
const LAST_XID = 0x7fff_ffff
/** A request that was the first to wait at so many losses in a row may be what breaks the connection each time. */
const MAX_HEAD_LOSSES = 5

/** The session that requests belong to. */
export interface RequestOwner {
  readonly lease: Lease
  /** The error with which a call fails now, when the client is finished. */
  readonly callRejection: ZooKeeperError | undefined
  readonly sessionId: bigint
  /** A number for the next thing that is told. */
  nextOrder(): number
  /** The server says that the session is elsewhere. */
  onSessionMoved(): void
  /** The server does not take this client's credentials, or demands some. */
  onAuthFailed(error: AuthFailedError): void
}

/**
 * Requests from call to answer: pipelined in order on the connection that stands, held while there is none, tried again
 * where that is safe.
 */
export class RequestDispatcher {
  readonly #options: SessionOptions
  readonly #owner: RequestOwner
  #connection: FramedConnection | undefined
  /** The connection on which requests are in flight, also while no more are sent on it. */
  #inFlightConnection: FramedConnection | undefined
  #readOnly = false
  #inFlight = EMPTY_REQUEST_LIST
  #offlineQueue = EMPTY_REQUEST_LIST
  #awaitingReadWrite: RequestList | undefined
  /** Wait for a moment. */
  #awaitingRetry: RequestList | undefined
  #signals: SignalListeners | undefined
  #pool: PendingRequest | undefined
  #pooledCount = 0
  #xid = 0
  #server: ServerAddress | undefined
  /** When the requests that gather for the next write began to do so. */
  #gatheringSince = 0
  /** Called when nothing is in flight, once. */
  #onIdle: (() => void) | undefined
  /** The request whose answer broke the connection has been told. */
  #isDecodeErrorReported = false
  /** Whether the connection that stands has answered anything. */
  hasReceivedReply = false
  /** Only for clients whose reads leave together. */
  readonly #batcher: ReadBatcher | undefined

  constructor(options: SessionOptions, host: RequestOwner) {
    this.#options = options
    this.#owner = host
    if (options.batchReads > 0) this.#batcher = new ReadBatcher(options, host)
  }

  get sessionId(): bigint {
    return this.#owner.sessionId
  }

  acquire(kind: Operation): PendingRequest {
    const slot = this.#pool ?? new PendingRequest()
    if (this.#pool !== undefined) {
      this.#pool = slot.next
      this.#pooledCount--
    }
    slot.next = undefined
    slot.operation = kind
    return slot
  }

  /** Sends a request, or holds it until that is possible. */
  submit<T>(slot: PendingRequest): Promise<T> {
    const promise = createPromise<T>(slot)
    slot.startedAt = this.#now()
    if (this.#options.callerStacks) slot.callSite = captureCallSite()
    const { instrumentation, redactPath } = this.#options
    if (instrumentation?.request !== undefined) {
      slot.onEnd = observeRequest(
        instrumentation,
        () => requestInfoOf(slot, this.#server, redactPath),
        redactPath,
      )
    }
    const { callRejection: refusal } = this.#owner
    if (refusal !== undefined) {
      this.#reject(
        slot,
        slot.callSite === undefined ? refusal : terminalErrorFor(refusal, errorContextOf(slot)),
      )
      return promise
    }
    if (slot.options !== undefined && !this.#armCallerLimits(slot)) return promise
    this.#dispatch(slot)
    return promise
  }

  /** A connection stands and is primed: what waits goes out. */
  attach(wire: FramedConnection, readOnly: boolean, server: ServerAddress): void {
    this.#connection = this.#inFlightConnection = wire
    this.#readOnly = readOnly
    this.#server = server
    this.hasReceivedReply = false
    // What a read-only server refused is older than what came while there was none.
    const refused = readOnly ? undefined : this.#awaitingReadWrite?.drain()
    if (refused === undefined && this.#offlineQueue.length === 0) return
    const waiting = [...(refused ?? []), ...this.#offlineQueue.drain()]
    for (const slot of waiting) {
      if (slot.attempts > 0 && !this.mayRetry(slot)) this.#rejectWithLoss(slot, 'no connection came in time')
      else this.#send(slot)
    }
  }

  /** Nothing is sent from now on; what is in flight may still be answered. */
  pauseSending(): void {
    this.#connection = undefined
  }

  /** Sends again on the connection that stands, after all. */
  resumeSending(): void {
    this.#onIdle = undefined
    const carrier = this.#inFlightConnection
    if (carrier?.isOpen !== true) return
    this.#connection = carrier
    for (const slot of this.#offlineQueue.drain()) this.#send(slot)
  }

  /** Runs `action` as soon as nothing is in flight. */
  whenIdle(action: () => void): void {
    this.#onIdle = action
    this.#checkIdle()
  }

  /**
   * The connection is gone. What can be tried again waits for the next one, in order; the rest fails. Once a write has
   * failed the writes behind it fail too: nobody may see a later one carried out without an earlier one.
   */
  detach(cause: Error): void {
    const head = this.#inFlight.head
    if (head !== undefined && head.xid !== 0) head.headLosses++
    if (head?.isBatched && this.#hasBeenFlushed(head)) this.#batcher!.onConnectionLoss()
    const guilty = cause instanceof ProtocolError && !this.#isDecodeErrorReported ? head : undefined
    const guiltyXid = guilty?.xid
    this.#isDecodeErrorReported = false
    const slots = this.#inFlight.drain()
    const later = this.#offlineQueue.drain()
    for (const slot of slots) {
      slot.isAmbiguous ||= this.#hasBeenFlushed(slot)
      // Which of a batch it was remains to be seen.
      if (slot.isBatched && slot.xid === guiltyXid) resetAttempts(slot)
      leaveBatch(slot)
    }
    this.#connection = this.#inFlightConnection = undefined
    this.#onIdle = undefined
    let broken = false
    for (const slot of [...slots, ...later]) {
      const again =
        slot.attempts === 0 ||
        (slot !== guilty &&
          slot.headLosses < MAX_HEAD_LOSSES &&
          this.mayRetry(slot) &&
          (!slot.isAmbiguous || slot.operation.isIdempotent(slot)))
      if (again && !(broken && slot.operation.isWrite)) {
        this.#enqueueOffline(slot)
        this.#limitRetryTime(slot)
        continue
      }
      broken ||= slot.operation.isWrite
      if (slot === guilty) {
        this.#reject(slot, errorFromCode(ErrorCode.MARSHALLINGERROR, { ...this.errorContext(slot), cause }))
      } else this.#rejectWithLoss(slot, undefined, cause)
    }
  }

  /** Fails everything that has not been answered. */
  failAll(error: (slot: PendingRequest) => ZooKeeperError): void {
    for (const slot of this.#inFlight.drain()) {
      slot.isAmbiguous ||= this.#hasBeenFlushed(slot)
      this.#reject(slot, error(slot))
    }
    this.#connection = this.#inFlightConnection = undefined
    this.#onIdle = undefined
    this.#batcher?.reset()
    for (const queue of [this.#awaitingReadWrite, this.#offlineQueue, this.#awaitingRetry]) {
      for (const slot of queue?.drain() ?? []) this.#reject(slot, error(slot))
    }
  }

  /** What an error of a request says of it. */
  errorContext(slot: PendingRequest): ErrorContext {
    return {
      ...errorContextOf(slot),
      maybeApplied: slot.operation.isWrite && (slot.isAmbiguous || this.#hasBeenFlushed(slot)),
    }
  }

  /** The answer to the oldest request in flight. Throws when it is the answer to another one. */
  onReply(reader: Reader, xid: number, code: number, order: number): void {
    const slot = this.#inFlight.head
    if (slot === undefined || slot.xid !== xid) {
      throw new Error(
        `Expected the answer to request ${slot?.xid ?? 'none'}, got one to ${xid}: the stream of replies is broken`,
      )
    }
    if (slot.isBatched) return this.#onBatchReply(slot, reader, code)
    this.#inFlight.shift()
    this.hasReceivedReply = true
    if (!this.#readOnly)
      this.#owner.lease.onReply(slot.sentAt, slot.operation.isWrite && code === 0 ? 'commit' : 'contact')
    if (code === 0) this.#onSuccess(slot, reader, order)
    else this.onErrorReply(slot, code, order)
    if (this.#onIdle !== undefined) this.#checkIdle()
  }

  /** One answer for the requests of a batch, each of which succeeds or fails as it would have by itself. */
  #onBatchReply(first: PendingRequest, reader: Reader, code: number): void {
    const { sentAt } = first
    const told = code === 0 ? this.#batcher!.read(reader, first) : undefined
    this.hasReceivedReply = true
    if (!this.#readOnly) this.#owner.lease.onReply(sentAt, 'contact')
    if (told === undefined) this.#batcher!.onErrorReply(this.#inFlight, code, this)
    else this.#batcher!.settle(this.#inFlight, told, this)
    if (this.#onIdle !== undefined) this.#checkIdle()
  }

  /** The next request gets the number behind this one: for the test of what follows the last. */
  setLastXid(xid: number): void {
    this.#xid = xid
  }

  /** Settles a request that `Operation.resolveAmbiguous` took over. */
  resolveTakenOver(slot: PendingRequest, value: unknown): void {
    this.resolveBatched(slot, value, { bytes: 0 })
  }

  /** Settles a request that was answered together with others. */
  resolveBatched(slot: PendingRequest, value: unknown, end: { bytes: number; zxid?: bigint }): void {
    slot.onEnd?.({ sent: slot.requestBytes, ...end })
    this.#resolve(slot, value)
  }

  rejectTakenOver(slot: PendingRequest, error: ZooKeeperError): void {
    this.#reject(slot, error)
  }

  #onSuccess(slot: PendingRequest, reader: Reader, order: number): void {
    const start = reader.offset
    let value: unknown
    try {
      value = slot.operation.decode(reader, slot, order)
    } catch (cause) {
      // The caller hears of it, and the connection ends: nothing behind a malformed reply can be trusted.
      this.#isDecodeErrorReported = true
      const facts = { ...errorContextOf(slot), maybeApplied: slot.operation.isWrite, cause }
      this.#reject(slot, errorFromCode(ErrorCode.MARSHALLINGERROR, facts))
      throw cause
    }
    slot.operation.onReply?.(slot, 0)
    this.#batcher?.onSingleReply(slot, reader.end - start)
    slot.onEnd?.({ sent: slot.requestBytes, bytes: reader.end - start, zxid: readReplyZxid(reader) })
    this.#resolve(slot, value)
  }

  /** A request, which is no longer in flight, was answered with an error. */
  onErrorReply(slot: PendingRequest, code: number, order: number): void {
    const instead = slot.operation.recover?.(slot, code, order)
    if (instead !== undefined) {
      slot.operation.onReply?.(slot, code)
      slot.onEnd?.({ sent: slot.requestBytes, bytes: 0 })
      return this.#resolve(slot, instead.value)
    }
    const open = ambiguousCodes.has(code)
    slot.isAmbiguous ||= open && slot.operation.isWrite
    // Otherwise this try was not carried out.
    slot.xid = 0
    if (code === ErrorCode.SESSIONMOVED && this.mayRetry(slot)) {
      this.#inFlight.unshift(slot)
      return this.#owner.onSessionMoved()
    }
    if ((retryableCodes.has(code) || (open && slot.operation.isIdempotent(slot))) && this.mayRetry(slot)) {
      return this.#scheduleRetry(slot)
    }
    if (code === ErrorCode.NOTREADONLY && slot.options?.waitForReadWrite && !slot.isAbandoned) {
      this.#awaitingReadWrite ??= new RequestList()
      return this.#awaitingReadWrite.push(slot)
    }
    if (slot.isAmbiguous && slot.operation.resolveAmbiguous?.(slot, code, this)) return
    slot.operation.onReply?.(slot, code)
    const error = replyError(slot, code, this.errorContext(slot), this.#owner.sessionId)
    this.#reject(slot, error, true)
    if (error instanceof AuthFailedError) this.#owner.onAuthFailed(error)
  }

  #rejectWithLoss(slot: PendingRequest, reason: string | undefined, cause?: Error): void {
    const facts = { ...this.errorContext(slot), ...(cause === undefined ? {} : { cause }) }
    this.#reject(slot, connectionLossError(reason === undefined ? facts : { ...facts, reason }))
  }

  /** Sends it, or holds it while there is no connection. */
  #dispatch(slot: PendingRequest): void {
    if (this.#connection !== undefined) return this.#send(slot)
    // While a connection stands what waits is on its way, so there is no limit on it.
    const { offlineQueue } = this.#options
    if (this.#inFlightConnection === undefined && this.#offlineQueue.length >= offlineQueue) {
      return this.#rejectWithLoss(
        slot,
        `there is no connection and ${this.#offlineQueue.length} requests wait already`,
      )
    }
    this.#enqueueOffline(slot)
  }

  #enqueueOffline(slot: PendingRequest): void {
    if (this.#offlineQueue === EMPTY_REQUEST_LIST) this.#offlineQueue = new RequestList()
    this.#offlineQueue.push(slot)
  }

  #send(slot: PendingRequest): void {
    const wire = this.#connection!
    if (this.#batcher?.tryAppend(slot, wire) !== true && !this.#write(slot, wire)) return
    slot.cancelRetry?.()
    slot.cancelRetry = undefined
    slot.flushesBefore = wire.flushCount
    slot.attempts++
    slot.sentAt = this.#now()
    if (this.#inFlight === EMPTY_REQUEST_LIST) this.#inFlight = new RequestList()
    this.#inFlight.push(slot)
    wire.schedule()
  }

  /** Writes it in a frame of its own. False when it cannot be sent, and has failed. */
  #write(slot: PendingRequest, wire: FramedConnection): boolean {
    const { writer } = wire
    const mark = writer.beginFrame()
    this.#xid = this.#xid === LAST_XID ? 1 : this.#xid + 1
    try {
      writer.int(this.#xid)
      writer.int(slot.operation.opCode)
      slot.operation.encode(writer, slot)
    } catch (cause) {
      writer.truncate(mark)
      const reason = cause instanceof Error ? cause.message : String(cause)
      const message = `Expected arguments that ${slot.operation.name} can send: ${reason}`
      this.#reject(slot, new UsageError(message, { ...errorContextOf(slot), cause }))
      return false
    }
    writer.endFrame(mark)
    slot.requestBytes = writer.length - mark
    if (slot.requestBytes - 4 > this.#options.maxRequest) {
      writer.truncate(mark)
      this.#reject(slot, requestTooLongError(slot, this.#options.maxRequest))
      return false
    }
    slot.xid = this.#xid
    this.#batcher?.begin(slot, wire, mark)
    return true
  }

  /** Whether a request in flight has been handed to the transport. */
  #hasBeenFlushed(slot: PendingRequest): boolean {
    return (
      slot.xid !== 0 &&
      this.#inFlightConnection !== undefined &&
      this.#inFlightConnection.flushCount > slot.flushesBefore
    )
  }

  /** Lets the caller's signal and time limit end the call. False when they have done so already. */
  #armCallerLimits(slot: PendingRequest): boolean {
    const { signal, timeout } = slot.options!
    const wrong = checkCallLimits(slot)
    if (wrong !== undefined) {
      this.#reject(slot, wrong)
      return false
    }
    if (signal !== undefined) {
      this.#signals ??= new SignalListeners((one, reason) => this.#abandon(one, reason))
      this.#signals.add(signal, slot)
    }
    if (timeout !== undefined) {
      slot.cancelTimer = this.#options.clock.after(timeout, `deadline of ${slot.operation.name}`, () =>
        this.#abandon(slot, TIMEOUT),
      )
    }
    return true
  }

  /** Nobody waits any more. What is in flight, or leaves with this turn, stays in the queue: its answer will come. */
  #abandon(slot: PendingRequest, reason: unknown): void {
    if (slot.list !== undefined && slot.list !== this.#inFlight) {
      slot.list.remove(slot)
      return this.#reject(slot, abortError(reason, this.errorContext(slot)))
    }
    const error = abortError(reason, { ...errorContextOf(slot), maybeApplied: slot.operation.isWrite })
    slot.isAbandoned = true
    this.#disarmTimers(slot)
    if (slot.callSite !== undefined) setCallerStack(error, slot.callSite)
    slot.onEnd?.({ error, sent: slot.requestBytes, bytes: 0 })
    slot.onEnd = undefined
    slot.reject(error)
  }

  #scheduleRetry(slot: PendingRequest): void {
    const { base = 100, factor = 2, cap = 10_000 } = this.#policy(slot)
    const wait = randomFraction(this.#options.random) * Math.min(cap, base * factor ** (slot.attempts - 1))
    const parked = (this.#awaitingRetry ??= new RequestList())
    parked.push(slot)
    slot.cancelRetry = this.#options.clock.after(wait, `retry of ${slot.operation.name}`, () => {
      slot.cancelRetry = undefined
      if (parked.remove(slot)) this.#dispatch(slot)
    })
  }

  /** Waiting for a connection counts as time of the policy too. */
  #limitRetryTime(slot: PendingRequest): void {
    const { maxElapsed } = this.#policy(slot)
    if (slot.attempts === 0 || maxElapsed === undefined) return
    const left = Math.max(0, slot.startedAt + maxElapsed - this.#now())
    slot.cancelRetry = this.#options.clock.after(left, `end of retries of ${slot.operation.name}`, () => {
      slot.cancelRetry = undefined
      if (this.#offlineQueue.remove(slot)) this.#rejectWithLoss(slot, 'no connection came in time')
    })
  }

  #policy(slot: PendingRequest): RetryPolicy {
    return slot.options?.retry || this.#options.retry
  }

  mayRetry(slot: PendingRequest): boolean {
    if (slot.isAbandoned || slot.options?.retry === false) return false
    const { maxAttempts = Infinity, maxElapsed = Infinity } = this.#policy(slot)
    return slot.attempts < maxAttempts && this.#now() - slot.startedAt < maxElapsed
  }

  #resolve(slot: PendingRequest, value: unknown): void {
    if (slot.options !== undefined) this.#disarmTimers(slot)
    slot.resolve(value as never)
    this.#release(slot)
  }

  /** `answered` says that the kind has heard of the end of the request already. */
  #reject(slot: PendingRequest, error: ZooKeeperError, answered = false): void {
    this.#disarmTimers(slot)
    if (!answered) slot.operation.onDrop?.(slot)
    if (slot.callSite !== undefined) setCallerStack(error, slot.callSite)
    slot.onEnd?.({ error, sent: slot.requestBytes, bytes: 0 })
    slot.reject(error)
    this.#release(slot)
  }

  /** Nothing else may end it from now on. */
  #disarmTimers(slot: PendingRequest): void {
    if (slot.hasSignalListener) this.#signals?.remove(slot.options!.signal!, slot)
    slot.cancelTimer?.()
    slot.cancelTimer = undefined
    slot.cancelRetry?.()
    slot.cancelRetry = undefined
  }

  #release(slot: PendingRequest): void {
    slot.clear()
    if (this.#pooledCount >= POOL_SIZE) return
    slot.next = this.#pool
    this.#pool = slot
    this.#pooledCount++
  }

  /** The time at which the requests of this turn began to gather: never later than when they leave. */
  #now(): number {
    const wire = this.#connection
    if (wire === undefined || !wire.hasBufferedFrames || this.#gatheringSince < wire.lastSentAt) {
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

const TIMEOUT = { name: 'TimeoutError', message: 'The deadline of the call passed' }
