import { Writer } from '@zabra/protocol'
import type { SubTxn, Zxid } from '../core/types.ts'
import { Summary } from '../core/histogram.ts'
import type { ClientConnection } from './client-connection.ts'
import type { ClientService } from './client-service.ts'
import { MultiResults } from './multi-results.ts'
import { writeReplyBody } from './replies.ts'
import type { AcceptedWrite } from '../pipeline/index.ts'

/** Bytes of replies that are collected in one turn. */
const SEND_AT = 256 * 1024

/**
 * What goes out to one client: replies and notifications, collected in one buffer for each turn, and what `cons` shows of
 * them. Times are milliseconds on the monotonic clock.
 */
export class ReplyWriter {
  readonly writer: Writer
  readonly latency = new Summary()
  sentCount = 0
  /** Op code of the last request that was answered; undefined before the first. */
  lastOperation: number | undefined
  lastXid = 0
  lastZxid: Zxid = -1
  lastResponseAt = 0
  lastLatency = 0
  readonly #core: ClientService
  readonly #client: ClientConnection
  #results: MultiResults | undefined

  constructor(core: ClientService, client: ClientConnection) {
    this.writer = new Writer(512, core.bufferPool)
    this.#core = core
    this.#client = client
  }

  /** Whether what is collected is sent without waiting for the end of the turn. */
  get isFull(): boolean {
    return this.writer.length > SEND_AT
  }

  /** Writes the header of a reply and returns what `finish` needs. The body follows in `writer`. */
  beginReply(xid: number, zxid: Zxid, err: number): number {
    return this.beginReplyIn(this.writer, xid, zxid, err)
  }

  /** As `begin`, for a reply that is collected elsewhere. */
  beginReplyIn(writer: Writer, xid: number, zxid: Zxid, err: number): number {
    const mark = writer.beginFrame()
    writer.int(xid)
    writer.longNumber(zxid)
    writer.int(err)
    this.lastXid = xid
    this.lastZxid = zxid
    return mark
  }

  /** Keeps the result of a part of the client's multi. */
  addMultiResult(txn: SubTxn, isApplied: boolean): void {
    this.#results ??= new MultiResults(this.#core.bufferPool)
    this.#results.add(this.#core.tree, txn, isApplied)
  }

  /** Writes the reply to a write that is applied, with what `part` has kept. Returns its bytes. */
  writeReply({ xid, type, logged: { header, txn } }: AcceptedWrite, err: number): number {
    const { writer } = this
    const results = this.#results
    const mark = this.beginReply(xid, header.zxid, err)
    if (results === undefined) {
      if (err === 0) writeReplyBody(this.#core.tree, type, txn, writer)
      return this.endFrame(mark)
    }
    this.#results = undefined
    const size = results.finish(writer, mark, () => this.#client.flush())
    this.countFrame(size)
    return size
  }

  /** Changes the error of the reply that `begin` began. */
  setError(mark: number, err: number): void {
    this.setErrorIn(this.writer, mark, err)
  }

  /** As `setError`, for a reply that is collected elsewhere. */
  setErrorIn(writer: Writer, mark: number, err: number): void {
    writer.intAt(mark + 16, err)
  }

  /** Ends a reply to a request of type `type` that came at `startedAt`. */
  endReply(mark: number, type: number, startedAt: number, now: number, latency: Summary): void {
    this.recordReply(this.endFrame(mark), type, startedAt, now, latency)
  }

  /** Notes a reply of so many bytes. */
  recordReply(size: number, type: number, startedAt: number, now: number, latency: Summary): void {
    const took = Math.max(0, now - startedAt)
    this.lastOperation = type
    this.lastLatency = took
    this.lastResponseAt = now
    this.latency.add(took)
    latency.add(took)
    const { stats } = this.#core
    stats.latency.add(took)
    stats.responseSize.add(size)
    stats.lastResponseSize = size
  }

  /** Ends a frame that is no reply to a request. Returns its bytes. */
  endFrame(mark: number): number {
    this.writer.endFrame(mark)
    const size = this.writer.length - mark
    this.countFrame(size)
    return size
  }

  /** Adds a whole event. */
  addNotification(frame: Uint8Array): void {
    this.writer.raw(frame)
    this.#count(frame.length)
    this.#core.scheduleNotification(this.#client)
  }

  resetStats(): void {
    this.sentCount = this.lastXid = this.lastResponseAt = this.lastLatency = 0
    this.lastZxid = -1
    this.lastOperation = undefined
    this.latency.reset()
  }

  /** Notes a frame that goes to the client as part of an answer. */
  countFrame(bytes: number): void {
    this.#count(bytes)
    this.#core.scheduleFlush(this.#client)
  }

  #count(bytes: number): void {
    this.sentCount++
    const { stats } = this.#core
    stats.sent++
    stats.responseBytes += bytes
  }
}
