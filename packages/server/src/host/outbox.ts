import { Writer } from '@zabra/protocol'
import type { SubTxn, Zxid } from '../core/types.ts'
import { Range } from '../core/range.ts'
import type { ClientConnection } from './connection.ts'
import type { ServerCore } from './core.ts'
import { MultiResults } from './multi-results.ts'
import { writeBody } from './replies.ts'
import type { Entry } from './writes/index.ts'

/** Bytes of replies that are collected in one turn. */
const SEND_AT = 256 * 1024

/**
 * What goes out to one client: replies and notifications, collected in one buffer for each turn, and what `cons` shows of
 * them. Times are milliseconds on the monotonic clock.
 */
export class Outbox {
  readonly writer: Writer
  readonly latency = new Range()
  sent = 0
  /** Op code of the last request that was answered; undefined before the first. */
  lastOperation: number | undefined
  lastXid = 0
  lastZxid: Zxid = -1
  lastResponseAt = 0
  lastLatency = 0
  readonly #core: ServerCore
  readonly #client: ClientConnection
  #results: MultiResults | undefined

  constructor(core: ServerCore, client: ClientConnection) {
    this.writer = new Writer(512, core.rooms)
    this.#core = core
    this.#client = client
  }

  /** Whether what is collected is sent without waiting for the end of the turn. */
  get isLarge(): boolean {
    return this.writer.length > SEND_AT
  }

  /** Writes the header of a reply and returns what `finish` needs. The body follows in `writer`. */
  begin(xid: number, zxid: Zxid, err: number): number {
    return this.header(this.writer, xid, zxid, err)
  }

  /** As `begin`, for a reply that is collected elsewhere. */
  header(writer: Writer, xid: number, zxid: Zxid, err: number): number {
    const mark = writer.beginFrame()
    writer.int(xid)
    writer.longNumber(zxid)
    writer.int(err)
    this.lastXid = xid
    this.lastZxid = zxid
    return mark
  }

  /** Keeps the result of a part of the client's multi. */
  part(txn: SubTxn, isApplied: boolean): void {
    this.#results ??= new MultiResults(this.#core.rooms)
    this.#results.add(this.#core.tree, txn, isApplied)
  }

  /** Writes the reply to a write that is applied, with what `part` has kept. Returns its bytes. */
  writeReply({ xid, type, logged: { header, txn } }: Entry, err: number): number {
    const { writer } = this
    const results = this.#results
    const mark = this.begin(xid, header.zxid, err)
    if (results === undefined) {
      if (err === 0) writeBody(this.#core.tree, type, txn, writer)
      return this.endFrame(mark)
    }
    this.#results = undefined
    const size = results.finish(writer, mark, () => this.#client.flush())
    this.count(size)
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
  finish(mark: number, type: number, startedAt: number, now: number, latency: Range): void {
    this.replied(this.endFrame(mark), type, startedAt, now, latency)
  }

  /** Notes a reply of so many bytes. */
  replied(size: number, type: number, startedAt: number, now: number, latency: Range): void {
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
    this.count(size)
    return size
  }

  /** Adds a whole event. */
  add(frame: Uint8Array): void {
    this.writer.raw(frame)
    this.#count(frame.length)
    this.#core.markTold(this.#client)
  }

  resetStats(): void {
    this.sent = this.lastXid = this.lastResponseAt = this.lastLatency = 0
    this.lastZxid = -1
    this.lastOperation = undefined
    this.latency.reset()
  }

  /** Notes a frame that goes to the client as part of an answer. */
  count(bytes: number): void {
    this.#count(bytes)
    this.#core.markDirty(this.#client)
  }

  #count(bytes: number): void {
    this.sent++
    const { stats } = this.#core
    stats.sent++
    stats.responseBytes += bytes
  }
}
