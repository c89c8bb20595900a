import type { Clock, Logger } from '@zabra/runtime'
import { errorName, formatZxid, OpCode } from '@zabra/protocol'
import { isRead, operationOf } from '../core/operations/index.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import { userNames } from '../audit/index.ts'
import type { Identity, Txn, Zxid } from '../core/types.ts'
import type { StageTimes, WriteStages } from '../core/write-stages.ts'
import type { AcceptedWrite } from '../pipeline/index.ts'
import { logContext, type LoggedClient } from './log-context.ts'
import { cutName, pathIn } from './request-path.ts'
import type { RequestArrival, RequestHeader } from './request-queue.ts'
import { TokenBucket } from './token-bucket.ts'

/** The client of a slow request. */
export interface SlowClient extends LoggedClient {
  readonly identities: readonly Identity[]
}

/** A request that took longer than `slow.request.ms`, or `slow.request.readMs` if it is a read. Times are in milliseconds. */
export interface SlowRequest {
  /** When it was answered, milliseconds since 1970. */
  readonly at: number
  readonly op: string
  /**
   * The path, or that of the first part of a multi, cut to 512 bytes. Absent where the request has none, and for a write that has
   * failed.
   */
  readonly path?: string
  /** The number of parts of a multi that has not failed. */
  readonly parts?: number
  readonly result: string
  readonly session: string
  readonly client: string
  /** The first eight users of the client, each cut to 512 bytes. */
  readonly users: readonly string[]
  readonly tookMs: number
  /** Bytes of the request and of the reply, with their headers. */
  readonly requestBytes: number
  readonly replyBytes: number
  /** Where the time went. Together the stages are `tookMs`. */
  readonly stages: SlowStages
  /** How long the queues were when it arrived. */
  readonly queues: QueuesAtArrival
  /** The epoch in which it was answered. */
  readonly epoch: number
  /** The transaction of a write; for a read the last one that the server had applied. Absent where the reply has none. */
  readonly zxid?: string
}

/** All stages of a write. A read has `queue`, until it is executed, and `reply`; a sync has `commit`, until it is done, and `reply`. */
export type SlowStages =
  | StageTimes
  | Pick<StageTimes, 'queue' | 'reply'>
  | Pick<StageTimes, 'commit' | 'reply'>

export interface QueuesAtArrival {
  /** Requests of its session without a reply. */
  readonly session: number
  /** Writes of this server's clients without a reply. */
  readonly outstanding: number
  /** Requests and transactions that waited to be prepared, committed or applied here, those of other servers' clients included. */
  readonly transactions: number
}

/** A request whose reply is written: with its body if it waited, with its path if its reply took several turns. */
export interface AnsweredRequest extends RequestHeader, Partial<RequestArrival> {
  readonly body?: Uint8Array | undefined
  readonly from?: number
  readonly to?: number
  readonly syncBody?: Uint8Array | undefined
  readonly path?: string | undefined
  /** When its execution began. */
  readonly begunAt?: number
}

export interface WrittenReply {
  readonly err: number
  readonly zxid: Zxid
  readonly bytes: number
  /** When the turn began that wrote it, on the monotonic clock. */
  readonly now: number
}

/** A slow request whose reply is not sent. `answeredAt` is when the reply was written. */
interface UnsentReply {
  readonly client: SlowClient
  readonly users: readonly string[]
  readonly request: RequestHeader & RequestArrival
  readonly path: string | undefined
  readonly begunAt: number
  readonly reply: WrittenReply
  readonly answeredAt: number
  readonly write: AcceptedWrite | undefined
}

/** Slow requests that are kept. */
const KEPT = 512
/** Users of a client that are named. */
const MAX_USERS = 8
/** Lines of the log: at once, and per second. */
const BURST = 10
const LINES_PER_SECOND = 10

/**
 * Logs requests that took longer than a limit, and keeps the last of them. A fast request costs a comparison: what is reported of a slow
 * one is in the objects that a request that waits has anyway.
 */
export class SlowRequests {
  /** No request that took less is slow, in milliseconds; Infinity where the settings turn this off. */
  leastMs = Infinity
  #limitMs = Infinity
  #readLimitMs = Infinity
  readonly #kept = new RingBuffer<SlowRequest | undefined>(undefined)
  readonly #tokens = new TokenBucket(BURST, 1000, LINES_PER_SECOND)
  readonly #options: SlowRequestsOptions
  /** Slow requests that were kept and not logged since the last line. */
  #omitted = 0
  /** Slow requests of this turn. */
  #unsent: UnsentReply[] = []

  constructor(options: SlowRequestsOptions) {
    this.#options = options
  }

  /** Sets the times from which on writes and reads are slow; 0 turns that off, as it is before the first call. */
  setLimits(limitMs: number, readLimitMs: number): void {
    this.#limitMs = limitMs || Infinity
    this.#readLimitMs = readLimitMs || Infinity
    this.leastMs = Math.min(this.#limitMs, this.#readLimitMs)
  }

  /** Yields the slow requests that are kept, the newest first. */
  *newestFirst(): Generator<SlowRequest> {
    for (let index = this.#kept.length - 1; index >= 0; index--) yield this.#kept.at(index)!
  }

  isSlow(type: number, tookMs: number): boolean {
    return tookMs >= (isOwnRead(type) ? this.#readLimitMs : this.#limitMs)
  }

  /** Notes a slow request, whose reply is sent before the next call of `sent`. Its body is used during the call only. */
  note(client: SlowClient, request: AnsweredRequest, reply: WrittenReply, write?: AcceptedWrite): void {
    const { xid, type, startedAt, begunAt = reply.now } = request
    const { requestBytes = 0, ahead = 0, outstanding = 0, transactions = 0 } = request
    this.#unsent.push({
      client,
      users: userNames(client.identities.slice(0, MAX_USERS)).map(cutName),
      request: { xid, type, startedAt, requestBytes, ahead, outstanding, transactions },
      path: request.path ?? pathOf(request),
      begunAt,
      reply,
      answeredAt: this.#options.clock.monotonic(),
      write,
    })
  }

  /** Whether requests wait for `sent`. */
  get hasUnsent(): boolean {
    return this.#unsent.length > 0
  }

  /** Keeps and logs the requests that were noted: their replies were sent at `now` on the monotonic clock. */
  sent(now: number): void {
    for (const request of this.#unsent.splice(0)) this.#keep(this.#describe(request, now))
  }

  #keep(slow: SlowRequest): void {
    const { clock, logger } = this.#options
    if (this.#kept.length === KEPT) this.#kept.shift()
    this.#kept.push(slow)
    if (!this.#tokens.take(clock.monotonic())) {
      this.#omitted++
      return
    }
    const { at: _, ...fields } = slow
    const omitted = this.#omitted === 0 ? {} : { omitted: this.#omitted }
    this.#omitted = 0
    logger.warn({ ...fields, ...omitted }, 'A request was slow')
  }

  #describe(unsent: UnsentReply, now: number): SlowRequest {
    const { client, users, request, reply, write } = unsent
    const { type, startedAt, requestBytes, ahead: session, outstanding, transactions } = request
    const { clock, epoch } = this.#options
    const path = write === undefined ? unsent.path : writtenPath(write.logged.txn)
    return {
      at: clock.wall(),
      op: operationOf(type).name,
      ...(path === undefined ? {} : { path: cutName(path) }),
      ...(write?.logged.txn.type === OpCode.multi ? { parts: write.logged.txn.txns.length } : {}),
      result: errorName(reply.err).toLowerCase(),
      ...logContext(client),
      users,
      tookMs: rounded(now - startedAt),
      requestBytes,
      replyBytes: reply.bytes,
      stages: this.#stagesOf(unsent, now),
      queues: { session, outstanding, transactions },
      epoch: epoch(),
      ...(reply.zxid > 0 ? { zxid: `0x${formatZxid(reply.zxid)}` } : {}),
    }
  }

  #stagesOf(
    { request: { type, startedAt }, begunAt, answeredAt, write }: UnsentReply,
    now: number,
  ): SlowStages {
    if (write !== undefined) {
      const stages = this.#options.stages.of(write.logged.header.zxid, startedAt, answeredAt, now)
      const entries = Object.entries(stages).map(([stage, ms]: [string, number]) => [stage, rounded(ms)])
      return Object.fromEntries(entries) as unknown as StageTimes
    }
    const waited = rounded(begunAt - startedAt)
    const reply = rounded(now - begunAt)
    return type === OpCode.sync ? { commit: waited, reply } : { queue: waited, reply }
  }
}

export interface SlowRequestsOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly epoch: () => number
  readonly stages: WriteStages
}

/** Whether a request is a read that no other server is asked for. */
const isOwnRead = (type: number): boolean => type !== OpCode.sync && isRead(type)

function pathOf({ type, body, from = 0, to = 0, syncBody }: AnsweredRequest): string | undefined {
  if (syncBody !== undefined) return pathIn(type, syncBody, 0, syncBody.length)
  return body === undefined ? undefined : pathIn(type, body, from, to)
}

function writtenPath(txn: Txn): string | undefined {
  if (txn.type !== OpCode.multi) return 'path' in txn ? txn.path : undefined
  for (const part of txn.txns) return writtenPath(part)
  return undefined
}

const rounded = (ms: number): number => Math.round(ms * 10) / 10
