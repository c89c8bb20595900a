import { ErrorCode, OpCode, writeMultiHeader, Writer, type BufferPool } from '@zabra/protocol'
import type { Histogram } from '../core/histogram.ts'
import { MULTI_END, operationOf } from '../core/operations/index.ts'
import { PieceWriter } from '../core/piece-writer.ts'
import { failureOf, type Tree } from '../core/tree/index.ts'
import type { SubTxn, Txn, Zxid } from '../core/types.ts'
import type { AcceptedWrite } from '../pipeline/index.ts'
import type { Flushable, FlushQueue } from './flush-queue.ts'
import type { AnsweredRequest, SlowRequests } from './slow-requests.ts'
import type { ServerStats } from './stats.ts'
import type { TopClient, TopRequests } from './top-requests.ts'

/** A connection with so many buffered bytes is flushed before the end of the turn. */
const FLUSH_BYTES = 256 * 1024

/** What `cons` reports about the requests of one connection. Times are milliseconds on the monotonic clock. */
export class ConnectionStats {
  received = 0
  sent = 0
  /** Op code of the last request with a reply; undefined before the first. */
  lastOperation: number | undefined
  lastXid = 0
  lastZxid: Zxid = -1
  lastResponseAt = 0
  lastLatency = 0
  /** Replies to requests, and their latencies. */
  replies = 0
  minLatency = 0
  maxLatency = 0
  totalLatency = 0

  /** 0 while there are no replies. */
  get meanLatency(): number {
    return this.replies === 0 ? 0 : this.totalLatency / this.replies
  }

  reset(): void {
    Object.assign(this, new ConnectionStats())
  }
}

/** What the reply writers of all connections share. */
export interface ReplyContext {
  readonly tree: Tree
  readonly bufferPool: BufferPool
  readonly flushQueue: FlushQueue
  readonly stats: ServerStats
  readonly slowRequests: SlowRequests
  readonly topRequests: TopRequests
}

/** Writes replies and watch events into the buffer of one connection, which is flushed at the end of the turn. */
export class ReplyWriter {
  readonly writer: PieceWriter
  readonly stats = new ConnectionStats()
  readonly #context: ReplyContext
  readonly #channel: Flushable & TopClient
  #multiResults: MultiResults | undefined
  /** The error number of the reply that was begun last. */
  #err = 0

  constructor(context: ReplyContext, channel: Flushable & TopClient) {
    this.writer = new PieceWriter(512, context.bufferPool)
    this.#context = context
    this.#channel = channel
  }

  /** Whether the buffer must be flushed before the end of the turn. */
  get isFull(): boolean {
    return this.writer.length > FLUSH_BYTES
  }

  /** Writes the header of a reply. Returns the mark that `endReply` and `setError` take. The body follows in `writer`. */
  beginReply(xid: number, zxid: Zxid, err: number): number {
    return this.beginReplyIn(this.writer, xid, zxid, err)
  }

  /** Does as `beginReply` in another writer, for a reply that is written over several turns. */
  beginReplyIn(writer: Writer, xid: number, zxid: Zxid, err: number): number {
    const mark = writer.beginFrame()
    writer.int(xid)
    writer.longNumber(zxid)
    writer.int(err)
    this.#err = err
    this.stats.lastXid = xid
    this.stats.lastZxid = zxid
    return mark
  }

  /** Keeps the result of one part of a multi until `writeReply`. */
  addMultiResult(txn: SubTxn, isApplied: boolean): void {
    this.#multiResults ??= new MultiResults(this.#context.bufferPool)
    this.#multiResults.add(this.#context.tree, txn, isApplied)
  }

  /** Writes the reply to an applied write, with the results of `addMultiResult`. Returns its length in bytes. */
  writeReply({ xid, type, logged: { header, txn } }: AcceptedWrite, err: number): number {
    const { writer } = this
    const results = this.#multiResults
    const mark = this.beginReply(xid, header.zxid, err)
    if (results === undefined) {
      if (err === 0) writeReplyBody(this.#context.tree, type, txn, writer)
      return this.endFrame(mark)
    }
    this.#multiResults = undefined
    const size = results.finish(writer, mark, () => this.#channel.flush())
    this.countFrame(size)
    return size
  }

  /** Changes the error of the reply at `mark`. */
  setError(mark: number, err: number): void {
    this.setErrorIn(this.writer, mark, err)
  }

  /** Does as `setError` in another writer. */
  setErrorIn(writer: Writer, mark: number, err: number): void {
    this.#err = err
    writer.intAt(mark + 16, err)
  }

  /** Ends the reply to a request that was received at `startedAt`. */
  endReply(mark: number, type: number, startedAt: number, now: number, latency: Histogram): void {
    this.recordReply(this.endFrame(mark), type, startedAt, now, latency)
  }

  /** Counts a reply of `size` bytes in the statistics of the connection and of the server; `write` is the write that it answers. */
  recordReply(
    size: number,
    type: number,
    startedAt: number,
    now: number,
    latency: Histogram,
    request?: AnsweredRequest,
    write?: AcceptedWrite,
  ): void {
    const took = Math.max(0, now - startedAt)
    const own = this.stats
    own.lastOperation = type
    own.lastLatency = took
    own.lastResponseAt = now
    if (own.replies++ === 0 || took < own.minLatency) own.minLatency = took
    if (took > own.maxLatency) own.maxLatency = took
    own.totalLatency += took
    latency.add(took)
    const { stats, slowRequests, topRequests } = this.#context
    if (topRequests.isCounting) topRequests.replied(this.#channel, own.lastXid, size, took)
    if (took >= slowRequests.leastMs && slowRequests.isSlow(type, took))
      this.#noteSlow(size, now, request ?? { xid: own.lastXid, type, startedAt }, write)
    stats.requests.count(type, this.#err)
    stats.lastResponseSize = size
    if (size > stats.maxResponseSize) stats.maxResponseSize = size
    if (size < stats.minResponseSize || stats.minResponseSize === -1) stats.minResponseSize = size
  }

  #noteSlow(bytes: number, now: number, request: AnsweredRequest, write: AcceptedWrite | undefined): void {
    const reply = { err: this.#err, zxid: this.stats.lastZxid, bytes, now }
    this.#context.slowRequests.note(this.#channel, request, reply, write)
  }

  /** Ends a frame. Returns its length in bytes. */
  endFrame(mark: number): number {
    this.writer.endFrame(mark)
    const size = this.writer.length - mark
    this.countFrame(size)
    return size
  }

  /** Adds a whole watch event. */
  addNotification(frame: Uint8Array): void {
    this.writer.raw(frame)
    this.#count(frame.length)
    this.#context.flushQueue.notify(this.#channel)
  }

  /** Counts a frame of a reply, and flushes the connection at the end of the turn. */
  countFrame(bytes: number): void {
    this.#count(bytes)
    this.#context.flushQueue.add(this.#channel)
  }

  #count(bytes: number): void {
    this.stats.sent++
    const { stats } = this.#context
    stats.sent++
    stats.responseBytes += bytes
  }
}

/**
 * Writes the body of the reply to an applied write; not the results of a multi. `type` is the op code of the request: only
 * the reply to `create` has no stat. The tree must show the result of the write and no later one.
 */
function writeReplyBody(tree: Tree, type: number, txn: Txn, writer: Writer): void {
  operationOf(txn.type).writeReply(tree, txn, type, writer)
}

/**
 * Writes the result of one part of a multi. When a part of the multi has failed no part is applied, and each result is an error
 * number: 0 before the failed part, its error, and RUNTIMEINCONSISTENCY after it.
 */
function writeMultiResult(tree: Tree, txn: SubTxn, isApplied: boolean, writer: Writer): void {
  if (!isApplied) {
    const err = txn.type === OpCode.error ? txn.err : 0
    writeMultiHeader(writer, { type: OpCode.error, done: false, err })
    return writer.int(err)
  }
  const type = operationOf(txn.type).multi?.resultType ?? txn.type
  writeMultiHeader(writer, { type, done: false, err: 0 })
  writeReplyBody(tree, type, txn, writer)
}

/**
 * Whether a write failed because its session has moved to another server. The client gets no such error, since it may itself have
 * connected to two servers: its connection is closed, and it connects again (ZOOKEEPER-710).
 */
export function isSessionMoved(txn: Txn): boolean {
  const failed = txn.type === OpCode.multi ? failureOf(txn.txns) : txn
  return failed?.type === OpCode.error && failed.err === ErrorCode.SESSIONMOVED
}

export const SESSION_MOVED_REASON = 'Closed: its session has moved to another server'

/** A chunk with this many bytes is full: one more result still fits into a buffer of the pool. */
const CHUNK_BYTES = 60_000

/** Collects the results of the parts of one multi in chunks. One buffer for millions of bytes would be copied whenever it grows. */
class MultiResults {
  readonly #pool: BufferPool
  readonly #fullChunks: Writer[] = []
  #lastChunk: Writer
  /** Bytes of the full chunks. */
  #length = 0

  /** Takes the buffers of the chunks from `pool`. */
  constructor(pool: BufferPool) {
    this.#pool = pool
    this.#lastChunk = new Writer(512, pool)
  }

  /** Adds the result of a part. Call it right after the part is applied, while the tree shows its result. */
  add(tree: Tree, txn: SubTxn, isApplied: boolean): void {
    if (this.#lastChunk.length >= CHUNK_BYTES) {
      this.#fullChunks.push(this.#lastChunk)
      this.#length += this.#lastChunk.length
      this.#lastChunk = new Writer(512, this.#pool)
    }
    writeMultiResult(tree, txn, isApplied, this.#lastChunk)
  }

  /** Ends the reply at `mark` with these results as its body, calling `flush` after each full chunk. Returns the length of the reply. */
  finish(writer: Writer, mark: number, flush: () => void): number {
    writeMultiHeader(this.#lastChunk, MULTI_END)
    const size = writer.length - mark + this.#length + this.#lastChunk.length
    writer.intAt(mark, size - 4)
    for (const chunk of [...this.#fullChunks, this.#lastChunk]) {
      writer.raw(chunk.bytes())
      chunk.release()
      if (writer.length >= CHUNK_BYTES) flush()
    }
    return size
  }
}
