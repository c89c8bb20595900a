import type { Clock, Logger } from '@zabra/runtime'
import { errorName } from '@zabra/protocol'
import { operationOf } from '../core/operations/index.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import { userNames } from '../audit/index.ts'
import type { Identity } from '../core/types.ts'
import type { StageTimes, WriteStages } from '../core/write-stages.ts'
import type { AcceptedWrite } from '../pipeline/index.ts'
import { logContext, type LoggedClient } from './log-context.ts'
import { TokenBucket } from './token-bucket.ts'

/** The client of a slow request. */
export interface SlowClient extends LoggedClient {
  readonly identities: readonly Identity[]
}

/** A request that took longer than `slow.request.ms`. Times are in milliseconds. */
export interface SlowRequest {
  /** When it was answered, milliseconds since 1970. */
  readonly at: number
  readonly op: string
  /** The path of a write; absent for other requests and for multis. */
  readonly path?: string
  readonly result: string
  readonly session: string
  readonly client: string
  readonly users: readonly string[]
  readonly tookMs: number
  /** Bytes of the reply. */
  readonly replyBytes: number
  /** Of a write: the milliseconds of each stage. */
  readonly stages?: StageTimes
  readonly zxid?: string
  /** Writes of this server's clients without a reply at that time. */
  readonly outstanding: number
}

/** What is known of a request when its reply is written. */
export interface AnsweredRequest {
  readonly type: number
  readonly err: number
  /** When the request arrived, on the monotonic clock. */
  readonly startedAt: number
  readonly replyBytes: number
  readonly write: AcceptedWrite | undefined
}

/** A slow request whose reply is not sent. `answeredAt` is when the reply was written. */
interface UnsentReply extends AnsweredRequest {
  readonly client: SlowClient
  readonly answeredAt: number
}

/** Slow requests that are kept. */
const KEPT = 512
/** Lines of the log: at once, and per second. */
const BURST = 10
const LINES_PER_SECOND = 10

/** Logs requests that took longer than a limit, and keeps the last of them. */
export class SlowRequests {
  /** Milliseconds from which on a request is slow; Infinity where the settings turn this off. */
  readonly limitMs: number
  readonly #kept = new RingBuffer<SlowRequest | undefined>(undefined)
  readonly #tokens = new TokenBucket(BURST, 1000, LINES_PER_SECOND)
  readonly #options: SlowRequestsOptions
  /** Slow requests that were kept and not logged since the last line. */
  #omitted = 0
  /** Slow requests of this turn. */
  #unsent: UnsentReply[] = []

  constructor(options: SlowRequestsOptions) {
    this.#options = options
    this.limitMs = options.limitMs === 0 ? Infinity : options.limitMs
  }

  /** Yields the slow requests that are kept, the newest first. */
  *newestFirst(): Generator<SlowRequest> {
    for (let index = this.#kept.length - 1; index >= 0; index--) yield this.#kept.at(index)!
  }

  /** Notes a slow request, whose reply is sent before the next call of `sent`. */
  note(client: SlowClient, request: AnsweredRequest): void {
    this.#unsent.push({ ...request, client, answeredAt: this.#options.clock.monotonic() })
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

  #describe(
    { client, type, err, startedAt, answeredAt, replyBytes, write }: UnsentReply,
    now: number,
  ): SlowRequest {
    const { clock, outstanding } = this.#options
    return {
      at: clock.wall(),
      op: operationOf(type).name,
      ...(write === undefined ? {} : this.#describeWrite(write, answeredAt, now)),
      result: errorName(err).toLowerCase(),
      ...logContext(client),
      users: userNames(client.identities),
      tookMs: rounded(now - startedAt),
      replyBytes,
      outstanding: outstanding(),
    }
  }

  #describeWrite(
    { logged, startedAt }: AcceptedWrite,
    answeredAt: number,
    now: number,
  ): Pick<SlowRequest, 'path' | 'stages' | 'zxid'> {
    const { header, txn } = logged
    const stages = this.#options.stages.of(header.zxid, startedAt, answeredAt, now)
    return {
      ...('path' in txn ? { path: txn.path } : {}),
      stages: Object.fromEntries(
        Object.entries(stages).map(([stage, ms]: [string, number]) => [stage, rounded(ms)]),
      ) as unknown as StageTimes,
      zxid: `0x${header.zxid.toString(16)}`,
    }
  }
}

export interface SlowRequestsOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly limitMs: number
  readonly outstanding: () => number
  readonly stages: WriteStages
}

const rounded = (ms: number): number => Math.round(ms * 10) / 10
