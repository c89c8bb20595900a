import { OpCode, Writer, Xid, type Reader } from '@zabra/protocol'
import type { ChunkedReply, ReadCaller } from '../core/reads/index.ts'
import type { Identity, SessionId, Zxid } from '../core/types.ts'
import type { ClientChannel } from './client-channel.ts'
import type { ClientService } from './client-service.ts'

/** The header of a request. */
export interface RequestHeader {
  readonly xid: number
  readonly type: number
  /** When the request was received, on the monotonic clock. */
  readonly startedAt: number
}

/** Sends the replies that a read executor writes over several turns. */
export interface ChunkedReplySender {
  sendChunkedReply(bytes: Uint8Array): void
}

/**
 * Executes the reads of one connection. A large reply is written over several turns of the event loop, one at a time. Other replies
 * and events of the connection wait behind it, which keeps replies in order and an event behind the reply that set its watch.
 */
export class ReadExecutor implements ReadCaller<ClientChannel> {
  readonly listener: ClientChannel
  readonly #service: ClientService
  readonly #sender: ChunkedReplySender
  /** The reply that is being written. */
  #reply: ChunkedReply | undefined
  #steps: Generator<void> | undefined
  /** Holds the bytes of chunked replies; made for the first one. */
  #writer: Writer | undefined
  #isStepping = false

  constructor(service: ClientService, channel: ClientChannel, sender: ChunkedReplySender) {
    this.#service = service
    this.listener = channel
    this.#sender = sender
  }

  get sessionId(): SessionId {
    return this.listener.sessionId
  }

  get identities(): readonly Identity[] {
    return this.listener.identities
  }

  /** Whether a reply is being written over several turns. */
  get isBusy(): boolean {
    return this.#steps !== undefined
  }

  /** The bytes of the reply that is being written. */
  get byteSize(): number {
    return this.#steps === undefined ? 0 : (this.#writer?.length ?? 0)
  }

  /** Writes the reply to a read, or begins to write it in chunks. */
  execute(request: RequestHeader, body: Reader): void {
    const { xid, type } = request
    const { scratch, tree } = this.#service
    const { replyWriter } = this.listener
    const zxid = tree.lastZxid
    if (type === OpCode.setWatches || type === OpCode.setWatches2) {
      // Events that the client has missed are sent before the reply, which has no body.
      const result = this.#begin(type, body, scratch)
      if (typeof result !== 'number') return this.#start(request, zxid, result)
      return this.#endReply(replyWriter.beginReply(xid, zxid, result), request)
    }
    const mark = replyWriter.beginReply(type === OpCode.ping ? Xid.ping : xid, zxid, 0)
    const result = this.#begin(type, body, replyWriter.writer)
    if (typeof result !== 'number') {
      replyWriter.writer.truncate(mark)
      return this.#start(request, zxid, result)
    }
    if (result !== 0) replyWriter.setError(mark, result)
    this.#endReply(mark, request)
  }

  /** Adds an event to the chunked reply if the reply has caused it. Returns false for any other event. */
  captureNotification(frame: Uint8Array): boolean {
    if (!this.#isStepping) return false
    this.#writer!.raw(frame)
    this.listener.replyWriter.countFrame(frame.length)
    return true
  }

  /** Releases the chunked reply, whether it is complete or not. */
  cancel(): void {
    this.#reply?.dispose?.()
    this.#reply = this.#steps = undefined
  }

  /** Executes a read. Returns its error number, or a chunked reply unless one is being written already. */
  #begin(type: number, body: Reader, writer: Writer): number | ChunkedReply {
    const { reads } = this.#service
    return this.isBusy ? reads.execute(type, body, writer, this) : reads.begin(type, body, writer, this)
  }

  #endReply(mark: number, { type, startedAt }: RequestHeader): void {
    const { turnTime, stats, turnShares } = this.#service
    const { replyWriter } = this.listener
    replyWriter.endReply(mark, type, startedAt, turnTime, stats.readLatency)
    if (!replyWriter.isFull) return
    this.listener.flush()
    turnShares.checkNext()
  }

  #start(request: RequestHeader, zxid: Zxid, reply: ChunkedReply): void {
    this.listener.flush()
    this.#reply = reply
    this.#steps = this.#make(request, zxid, reply)
    this.#service.chunkedReplies.add(() => this.#step())
  }

  *#make({ xid, type, startedAt }: RequestHeader, zxid: Zxid, reply: ChunkedReply): Generator<void> {
    const writer = (this.#writer ??= new Writer(1 << 16))
    const { replyWriter } = this.listener
    const begin = reply.hasNotifications ? -1 : replyWriter.beginReplyIn(writer, xid, zxid, 0)
    const err = yield* reply.write(writer)
    const { turnTime, stats, tree } = this.#service
    const mark = begin === -1 ? replyWriter.beginReplyIn(writer, xid, tree.lastZxid, 0) : begin
    // Other replies of the connection may have been written since this one began.
    replyWriter.setErrorIn(writer, mark, err ?? 0)
    writer.endFrame(mark)
    replyWriter.countFrame(writer.length - mark)
    replyWriter.recordReply(writer.length - mark, type, startedAt, turnTime, stats.readLatency)
  }

  /** Returns whether more steps follow. */
  #step(): boolean {
    const steps = this.#steps
    if (steps === undefined) return false
    this.#isStepping = true
    const isDone = steps.next().done === true
    this.#isStepping = false
    this.listener.countMemory()
    // The count may have closed the connection.
    if (this.#steps === undefined) return false
    if (!isDone) return true
    this.cancel()
    this.#sender.sendChunkedReply(this.#writer!.take())
    return false
  }
}
