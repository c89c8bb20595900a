import { Writer, type BufferPool } from '@zabra/protocol'
import { Summary } from '../core/histogram.ts'
import type { Tree } from '../core/tree/index.ts'
import type { SubTxn, Zxid } from '../core/types.ts'
import type { AcceptedWrite } from '../pipeline/index.ts'
import type { Flushable, FlushQueue } from './flush-queue.ts'
import { MultiResults } from './multi-results.ts'
import { writeReplyBody } from './replies.ts'
import type { ServerStats } from './stats.ts'

/** A connection with so many buffered bytes is flushed before the end of the turn. */
const FLUSH_BYTES = 256 * 1024

/** What `cons` reports about the requests of one connection. Times are milliseconds on the monotonic clock. */
export class ConnectionStats {
  readonly latency = new Summary()
  received = 0
  sent = 0
  /** Op code of the last request with a reply; undefined before the first. */
  lastOperation: number | undefined
  lastXid = 0
  lastZxid: Zxid = -1
  lastResponseAt = 0
  lastLatency = 0

  reset(): void {
    this.received = this.sent = this.lastXid = this.lastResponseAt = this.lastLatency = 0
    this.lastZxid = -1
    this.lastOperation = undefined
    this.latency.reset()
  }
}

/** What the reply writers of all connections share. */
export interface ReplyContext {
  readonly tree: Tree
  readonly bufferPool: BufferPool
  readonly flushQueue: FlushQueue
  readonly stats: ServerStats
}

/** Writes replies and watch events into the buffer of one connection, which is flushed at the end of the turn. */
export class ReplyWriter {
  readonly writer: Writer
  readonly stats = new ConnectionStats()
  readonly #context: ReplyContext
  readonly #channel: Flushable
  #multiResults: MultiResults | undefined

  constructor(context: ReplyContext, channel: Flushable) {
    this.writer = new Writer(512, context.bufferPool)
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
    writer.intAt(mark + 16, err)
  }

  /** Ends the reply to a request that was received at `startedAt`. */
  endReply(mark: number, type: number, startedAt: number, now: number, latency: Summary): void {
    this.recordReply(this.endFrame(mark), type, startedAt, now, latency)
  }

  /** Counts a reply of `size` bytes in the statistics of the connection and of the server. */
  recordReply(size: number, type: number, startedAt: number, now: number, latency: Summary): void {
    const took = Math.max(0, now - startedAt)
    this.stats.lastOperation = type
    this.stats.lastLatency = took
    this.stats.lastResponseAt = now
    this.stats.latency.add(took)
    latency.add(took)
    const { stats } = this.#context
    stats.latency.add(took)
    stats.responseSize.add(size)
    stats.lastResponseSize = size
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
