import { OpCode, Writer, Xid, type Reader } from '@zabra/protocol'
import type { ReadCaller, ChunkedReply } from '../core/reads/index.ts'
import type { Zxid } from '../core/types.ts'
import type { ClientConnection } from './client-connection.ts'
import type { ClientService } from './client-service.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** What is asked, but for its body. */
interface Request {
  readonly xid: number
  readonly type: number
  readonly startedAt: number
}

/**
 * The reads of one client. A large one is answered in several turns of the event loop, one at a time. What else is written for
 * the client meanwhile waits behind it, so that replies keep their order and an event comes behind the reply that set its watch.
 */
export class ReadExecutor {
  readonly #core: ClientService
  readonly #client: ClientConnection
  #steps: Generator<void> | undefined
  #answer: ChunkedReply | undefined
  /** What a large reply is collected in, from the first one on. */
  #writer: Writer | undefined
  #isTelling = false

  constructor(core: ClientService, client: ClientConnection) {
    this.#core = core
    this.#client = client
  }

  get #outbox(): ReplyWriter {
    return this.#client.replyWriter
  }

  get isBusy(): boolean {
    return this.#steps !== undefined
  }

  /** Answers a read, or begins to. */
  execute(request: Request, reader: Reader): void {
    const caller: ReadCaller<ClientConnection> = this.#client
    const { xid, type } = request
    const { reads, scratch } = this.#core
    const zxid = this.#core.tree.lastZxid
    if (type === OpCode.setWatches || type === OpCode.setWatches2) {
      // What happened meanwhile is told before the reply, and the reply has no body.
      const err = this.isBusy
        ? reads.execute(type, reader, scratch, caller)
        : reads.begin(type, reader, scratch, caller)
      if (typeof err !== 'number') return this.#begin(request, zxid, err)
      return this.#finish(this.#outbox.beginReply(xid, zxid, err), request)
    }
    const mark = this.#outbox.beginReply(type === OpCode.ping ? Xid.ping : xid, zxid, 0)
    const { writer } = this.#outbox
    const err = this.isBusy
      ? reads.execute(type, reader, writer, caller)
      : reads.begin(type, reader, writer, caller)
    if (typeof err !== 'number') {
      this.#outbox.writer.truncate(mark)
      return this.#begin(request, zxid, err)
    }
    if (err !== 0) this.#outbox.setError(mark, err)
    this.#finish(mark, request)
  }

  #finish(mark: number, { type, startedAt }: Request): void {
    const { turnTime, stats } = this.#core
    this.#outbox.endReply(mark, type, startedAt, turnTime, stats.readLatency)
    if (this.#outbox.isFull) this.#client.flush()
  }

  #begin(request: Request, zxid: Zxid, answer: ChunkedReply): void {
    this.#client.flush()
    this.#answer = answer
    this.#steps = this.#make(request, zxid, answer)
    this.#later()
  }

  /** Takes an event that is part of the reply that is being made; false for any other. */
  captureNotification(frame: Uint8Array): boolean {
    if (!this.#isTelling) return false
    this.#writer!.raw(frame)
    this.#outbox.countFrame(frame.length)
    return true
  }

  /** What is being made is made, or given up. */
  cancel(): void {
    this.#answer?.dispose?.()
    this.#answer = this.#steps = undefined
  }

  *#make({ xid, type, startedAt }: Request, zxid: Zxid, answer: ChunkedReply): Generator<void> {
    const writer = (this.#writer ??= new Writer(1 << 16))
    const begin = answer.hasNotifications ? -1 : this.#outbox.beginReplyIn(writer, xid, zxid, 0)
    const err = yield* answer.write(writer)
    const mark = begin === -1 ? this.#outbox.beginReplyIn(writer, xid, this.#core.tree.lastZxid, 0) : begin
    if (err !== undefined) this.#outbox.setErrorIn(writer, mark, err)
    writer.endFrame(mark)
    const { turnTime, stats } = this.#core
    this.#outbox.countFrame(writer.length - mark)
    this.#outbox.recordReply(writer.length - mark, type, startedAt, turnTime, stats.readLatency)
  }

  #later(): void {
    this.#core.runLater(() => this.#step())
  }

  #step(): void {
    const steps = this.#steps
    if (steps === undefined) return
    this.#isTelling = true
    const isOver = steps.next().done === true
    this.#isTelling = false
    if (!isOver) return this.#later()
    this.cancel()
    this.#client.sendChunkedReply(this.#writer!.take())
  }
}
