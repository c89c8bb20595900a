import { ErrorCode, OpCode, type Reader, type Writer } from '@zabra/protocol'
import { errorFromCode, type ZooKeeperError } from '../errors.ts'
import { writePartHeader } from '../multi-parts.ts'
import { getData } from '../operations.ts'
import type { SessionOptions } from './options.ts'
import { leaveBatch, resetAttempts, type PendingRequest, type RequestList } from './pending-request.ts'
import { errorContextOf } from './request-info.ts'
import { ambiguousCodes, readReplyZxid, retryableCodes } from './error-codes.ts'
import type { Zxid } from '../types.ts'
import type { FramedConnection } from './framed-connection.ts'

/** Target for the length of the reply to a batch, estimated from earlier replies. */
const MAX_REPLY_BYTES = 256 * 1024
/** Expected length of a read before the first reply: small enough for a batch of the default length. */
const INITIAL_READ_BYTES = 4096
/** Share by which the expected length decays with each smaller reply. */
const SIZE_DECAY = 1 / 64
/**
 * After this many consecutive connection losses before the reply to a batch, batches are taken as the cause and
 * disabled.
 */
const MAX_CONNECTION_LOSSES = 3
/** Maximum length of a batch request in bytes: paths may be long. */
const MAX_REQUEST_BYTES = 64 * 1024
/** Length of the header of a part, and of the end marker: type, done, error. */
const HEADER_BYTES = 9
/** Length of a getData reply besides header and data: the length field and the Stat. */
const REPLY_OVERHEAD_BYTES = 72

/** Errors of the session or the server, which apply to every request and say nothing about its parameters. */
const connectionWideCodes: ReadonlySet<number> = new Set([
  ...retryableCodes,
  ...ambiguousCodes,
  ErrorCode.SESSIONEXPIRED,
  ErrorCode.AUTHFAILED,
  ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH,
])

/** Settles the requests of a batch. */
export interface BatchCallbacks {
  resolveBatched(request: PendingRequest, value: unknown, reply: BatchedReply): void
  onErrorReply(request: PendingRequest, code: number, order: number): void
  mayRetry(request: PendingRequest, error: () => ZooKeeperError): boolean
  rejectBatched(request: PendingRequest, error: ZooKeeperError): void
  /** Puts a request that is sent again on the next connection in front of those in flight. */
  putBack(request: PendingRequest): void
}

/** The session that the requests belong to. */
export interface BatchSession {
  nextOrder(): number
  onSessionMoved(): void
}

/** The share of one request in the reply to its batch. */
export interface BatchedReply {
  readonly replyBytes: number
  readonly zxid?: Zxid | undefined
}

/** The header of the reply to a batch, after all of its parts were decoded. */
export interface BatchReply {
  readonly xid: number
  readonly zxid: Zxid
}

/**
 * Batches reads: a plain `getData` that directly follows another one in the unflushed buffer joins it in one
 * `multiRead`. The last frame in the buffer grows in place, so no read is delayed, and another request between two
 * reads separates them. The requests of a batch are adjacent in the in-flight list and share one xid.
 */
export class ReadBatcher {
  readonly #session: BatchSession
  readonly #maxReads: number
  readonly #maxRequestBytes: number
  readonly #maxReplyBytes: number
  #isStopped = false
  #lossesInRow = 0
  /** Expected length of a read reply: the largest recent one, decaying. */
  #expectedReadBytes = INITIAL_READ_BYTES
  // The last frame in the write buffer, if it contains only reads: its position and its first request.
  #connection: FramedConnection | undefined
  #first!: PendingRequest
  #flushCount = 0
  #start = 0
  #end = 0
  #count = 0

  constructor({ batchReads, maxRequestBytes, maxFrameBytes }: SessionOptions, session: BatchSession) {
    this.#session = session
    this.#maxReads = batchReads
    this.#maxRequestBytes = Math.min(maxRequestBytes, MAX_REQUEST_BYTES)
    this.#maxReplyBytes = Math.min(MAX_REPLY_BYTES, maxFrameBytes / 2)
  }

  /** Allows batches again: a new session may be on another server. */
  reset(): void {
    this.#isStopped = false
    this.#lossesInRow = 0
  }

  /** Counts a connection loss while the reply to a batch was the next one expected. */
  onConnectionLoss(): void {
    if (++this.#lossesInRow >= MAX_CONNECTION_LOSSES) this.#isStopped = true
  }

  /**
   * Notes that a request was written in a frame of its own, which begins at `start`: later reads may join a plain
   * read.
   */
  begin(request: PendingRequest, connection: FramedConnection, start: number): void {
    if (request.operation !== getData || request.sendsAlone || this.#isStopped) return
    this.#connection = connection
    this.#first = request
    this.#flushCount = connection.flushCount
    this.#start = start
    this.#end = connection.writer.length
    this.#count = 1
  }

  /** Appends a request to the last frame. Returns false if it needs a frame of its own. */
  tryAppend(request: PendingRequest, connection: FramedConnection): boolean {
    if (
      request.operation !== getData ||
      request.sendsAlone ||
      this.#isStopped ||
      !this.#hasRoom(request, connection)
    )
      return false
    const { writer } = connection
    if (this.#count === 1) this.#convertToBatch(writer)
    else writer.truncate(this.#end - HEADER_BYTES)
    const before = writer.length
    writePart(writer, request)
    request.requestBytes = writer.length - before
    request.xid = this.#first.xid
    request.isBatched = true
    this.#count++
    this.#writeEnd(writer)
    return true
  }

  #hasRoom({ path }: PendingRequest, connection: FramedConnection): boolean {
    // A UTF-16 code unit takes at most three bytes.
    return (
      connection === this.#connection &&
      connection.flushCount === this.#flushCount &&
      connection.writer.length === this.#end &&
      this.#count < this.#maxReads &&
      (this.#count + 1) * this.#expectedReadBytes <= this.#maxReplyBytes &&
      this.#end - this.#start + 3 * HEADER_BYTES + 5 + 3 * path.length <= this.#maxRequestBytes
    )
  }

  /** Rewrites the preceding single read as a batch of one. */
  #convertToBatch(writer: Writer): void {
    const first = this.#first
    writer.truncate(this.#start)
    writer.beginFrame()
    writer.int(first.xid)
    writer.int(OpCode.multiRead)
    writePart(writer, first)
    first.requestBytes = writer.length - this.#start + HEADER_BYTES
    first.isBatched = true
  }

  #writeEnd(writer: Writer): void {
    writePartHeader(writer, -1, true)
    writer.endFrame(this.#start)
    this.#end = writer.length
  }

  /** Notes the reply to a request that was not in a batch. */
  onSingleReply(request: PendingRequest, bytes: number): void {
    if (request.operation === getData) this.#measure(bytes)
  }

  #measure(bytes: number): void {
    this.#expectedReadBytes = Math.max(bytes, this.#expectedReadBytes * (1 - SIZE_DECAY))
  }

  /**
   * Decodes the reply to a batch into its requests: the value into `params`, the error code or 0 into `intArgument`.
   * Decodes every part before any promise settles, so that after a malformed reply all reads can be sent again one by
   * one.
   */
  read(reader: Reader, first: PendingRequest): BatchReply {
    const { xid } = first
    for (let request: PendingRequest | undefined = first; request?.xid === xid; request = request.next) {
      const type = reader.int()
      const isEnd = reader.bool()
      reader.int()
      if (isEnd) malformed(reader, 'a result for each read of a batch, got fewer')
      if (type === OpCode.getData) {
        request.intArgument = 0
        request.params = request.operation.decode(reader, request, this.#session.nextOrder())
      } else if (type === OpCode.error) request.intArgument = readErrorPart(reader)
      else malformed(reader, `the result of a read, got one of type ${type}`)
    }
    reader.int()
    if (!reader.bool()) malformed(reader, 'a result for each read of a batch, got more')
    this.#lossesInRow = 0
    return { xid, zxid: readReplyZxid(reader) }
  }

  /** Settles the requests of a batch, the first ones in flight, with the decoded results. */
  settle(inFlight: RequestList, { xid, zxid }: BatchReply, callbacks: BatchCallbacks): void {
    // A callback may close the client or break the connection; then the remaining requests are no longer in flight.
    for (let request = inFlight.head; request?.xid === xid; request = inFlight.head) {
      inFlight.shift()
      const { intArgument: code, params: value } = request
      leaveBatch(request)
      if (code !== 0) callbacks.onErrorReply(request, code, 0)
      else {
        const bytes = HEADER_BYTES + REPLY_OVERHEAD_BYTES + (value as { data: Uint8Array }).data.length
        this.#measure(bytes)
        callbacks.resolveBatched(request, value, { replyBytes: bytes, zxid })
      }
    }
  }

  /**
   * Handles an error reply to the first batch in flight. A connection-wide error rejects or retries each read. Any
   * other error concerns the batch: its reads go out one by one on the next connection, in their order, and batching
   * stops. To end the connection it throws.
   */
  onErrorReply(inFlight: RequestList, code: number, callbacks: BatchCallbacks): void {
    const { xid } = inFlight.head!
    const hasMoved = code === ErrorCode.SESSIONMOVED
    const kept: PendingRequest[] = []
    for (let request = inFlight.head; request?.xid === xid; request = inFlight.head) {
      inFlight.shift()
      leaveBatch(request)
      const error = (): ZooKeeperError => errorFromCode(code, errorContextOf(request!))
      if (!hasMoved && connectionWideCodes.has(code)) callbacks.onErrorReply(request, code, 0)
      else if (hasMoved && !callbacks.mayRetry(request, error)) callbacks.rejectBatched(request, error())
      else kept.push(request)
    }
    if (kept.length === 0 && !hasMoved) return
    for (const request of kept.toReversed()) {
      request.xid = 0
      if (!hasMoved) resetAttempts(request)
      callbacks.putBack(request)
    }
    if (hasMoved) return this.#session.onSessionMoved()
    this.#isStopped = true
    const { message } = errorFromCode(code, { operation: 'multiRead' })
    throw new Error(
      `${message}: the reads of this session are sent one by one from now on, as without batchReads`,
    )
  }
}

function malformed(reader: Reader, expected: string): never {
  return reader.fail(`Expected ${expected}`, 'a batch of reads')
}

function readErrorPart(reader: Reader): number {
  const code = reader.int()
  return code === 0 ? malformed(reader, 'the error of a read, got 0') : code
}

function writePart(writer: Writer, request: PendingRequest): void {
  writePartHeader(writer, OpCode.getData, false)
  request.operation.encode(writer, request)
}
