import type { Clock, Logger } from '@zabra/runtime'
import { errorName } from '@zabra/protocol'
import { operationOf } from '../core/operations/index.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import { userNames } from '../audit/index.ts'
import type { Identity } from '../core/types.ts'
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
  /** Of a write: until the leader had prepared it, as its clock says; from then on; and the last sync of the log, which is a part of that. */
  readonly stages?: { readonly waitMs: number; readonly commitMs: number; readonly fsyncMs: number }
  readonly zxid?: string
  /** Writes of this server's clients without a reply at that time. */
  readonly outstanding: number
}

/** What is known of a request when its reply is written. */
export interface AnsweredRequest {
  readonly type: number
  readonly err: number
  readonly tookMs: number
  readonly replyBytes: number
  readonly write: AcceptedWrite | undefined
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

  constructor(options: SlowRequestsOptions) {
    this.#options = options
    this.limitMs = options.limitMs === 0 ? Infinity : options.limitMs
  }

  /** Yields the slow requests that are kept, the newest first. */
  *newestFirst(): Generator<SlowRequest> {
    for (let index = this.#kept.length - 1; index >= 0; index--) yield this.#kept.at(index)!
  }

  note(client: SlowClient, request: AnsweredRequest): void {
    const { clock, logger } = this.#options
    const slow = this.#describe(client, request)
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

  #describe(client: SlowClient, { type, err, tookMs, replyBytes, write }: AnsweredRequest): SlowRequest {
    const { clock, outstanding } = this.#options
    const at = clock.wall()
    return {
      at,
      op: operationOf(type).name,
      ...(write === undefined ? {} : this.#describeWrite(write, at, tookMs)),
      result: errorName(err).toLowerCase(),
      ...logContext(client),
      users: userNames(client.identities),
      tookMs: rounded(tookMs),
      replyBytes,
      outstanding: outstanding(),
    }
  }

  #describeWrite(
    { logged: { header, txn } }: AcceptedWrite,
    at: number,
    tookMs: number,
  ): Pick<SlowRequest, 'path' | 'stages' | 'zxid'> {
    const waitMs = Math.min(tookMs, Math.max(0, header.time - (at - tookMs)))
    const fsyncMs = this.#options.lastFsyncMs()
    return {
      ...('path' in txn ? { path: txn.path } : {}),
      stages: { waitMs: rounded(waitMs), commitMs: rounded(tookMs - waitMs), fsyncMs: rounded(fsyncMs) },
      zxid: `0x${header.zxid.toString(16)}`,
    }
  }
}

export interface SlowRequestsOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly limitMs: number
  readonly outstanding: () => number
  readonly lastFsyncMs: () => number
}

const rounded = (ms: number): number => Math.round(ms * 10) / 10
