import { epochOf } from '@zabra/protocol'
import { invariant, type Platform } from '@zabra/runtime'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { TxnLog, type LogRange, type TxnLogEvents, type TxnLogState } from '../persistence/index.ts'
import type { DatabaseSettings, Epochs } from './types.ts'

export interface LogWriterOptions {
  readonly settings: DatabaseSettings
  readonly platform: Platform
  readonly folder: string
  readonly lastZxid: Zxid
  readonly sinceSnapshot: number
  /** Grows with the log. */
  readonly logRange: LogRange
  /** Returns the number of znodes in the tree. */
  readonly nodeCount: () => number
  readonly events: TxnLogEvents
  /** No transaction is of a later epoch than the accepted one. Absent on a standalone server. */
  readonly epochs: Pick<Epochs, 'accepted'> | undefined
}

/**
 * Appends to the log during one role. Begins a new file, and is closed when the role ends; once it is revoked every append throws
 * an `InvariantError`, so no role writes after its end.
 */
export class LogWriter {
  readonly #log: TxnLog
  readonly #logRange: LogRange
  readonly #epochs: Pick<Epochs, 'accepted'> | undefined
  readonly #events: TxnLogEvents
  #isRevoked = false
  #hasLostAppends = false

  constructor({ settings, platform, folder, lastZxid, sinceSnapshot, ...rest }: LogWriterOptions) {
    const { logRange, nodeCount, events, epochs } = rest
    this.#logRange = logRange
    this.#events = events
    this.#epochs = epochs
    const { disk, clock, random, logger } = platform
    this.#log = new TxnLog(
      {
        disk,
        clock,
        random,
        logger,
        folder,
        lastZxid,
        sinceSnapshot,
        isDurable: settings.forceSync,
        preallocateBytes: settings.preAllocSizeBytes,
        snapCount: () => Math.max(settings.snapCount, Math.floor(settings.snapTreeShare * nodeCount())),
        snapSizeLimitBytes: settings.snapSizeLimitBytes,
        fileSizeLimitBytes: settings.txnLogSizeLimitBytes,
        syncWarningMs: settings.fsyncWarningThresholdMs,
        flushDelayMs: settings.flushDelayMs,
        maxBatchSize: settings.maxBatchSize,
      },
      {
        durable: (zxid) => this.#events.durable(zxid),
        snapshotDue: () => this.#events.snapshotDue(),
        diskFull: (durable, error) => {
          this.#hasLostAppends = true
          logRange.truncate(durable)
          this.#events.diskFull(durable, error)
        },
        spaceAvailable: () => this.#events.spaceAvailable(),
        fatal: (error) => this.#events.fatal(error),
      },
    )
  }

  /** The last transaction appended, or on disk when the role began. */
  get lastZxid(): Zxid {
    return this.#log.lastZxid
  }
  /** The last transaction that survives a power cut. */
  get durableZxid(): Zxid {
    return this.#log.durableZxid
  }
  get state(): TxnLogState {
    return this.#isRevoked ? 'closed' : this.#log.state
  }
  get stats(): TxnLog['stats'] {
    return this.#log.stats
  }
  /** Bytes appended that are not durable yet. A role that appends requests of others applies backpressure by this. */
  get pendingBytes(): number {
    return this.#log.pendingBytes
  }
  /** Transactions after the newest snapshot. */
  get sinceSnapshot(): number {
    return this.#log.txnsSinceRoll
  }
  /** Whether an append never became durable because the disk was full. */
  get hasLostAppends(): boolean {
    return this.#hasLostAppends
  }
  /** Why the disk cannot be trusted; `TxnLogEvents.fatal` was called with it. */
  get failure(): Error | undefined {
    return this.#log.failure
  }

  /** Encodes a transaction into the next batch. Throws as `appendPayload`. */
  append(logged: LoggedTxn): void {
    const { zxid } = logged.header
    this.#check(zxid)
    this.#logRange.add(zxid, this.#log.append(logged))
  }

  /**
   * Adds an encoded transaction (header, record, digest) to the next batch, byte for byte. The bytes are copied before this
   * returns. `zxid` must be the one in the payload, `adler` its Adler-32, if it is known. Throws a `LogFullError` while the disk is
   * full, a RangeError for a zxid that is not the next one, and an `InvariantError` when the role has ended or has not accepted
   * the epoch.
   */
  appendPayload(zxid: Zxid, payload: Uint8Array, adler?: number): void {
    this.#check(zxid)
    this.#log.appendPayload(zxid, payload, adler)
    this.#logRange.add(zxid, payload.length)
  }

  /** Resolves when everything appended is durable. Rejects when it is lost. */
  flush(): Promise<void> {
    return this.#log.flush()
  }

  /** Makes every later append throw. */
  revoke(): void {
    this.#isRevoked = true
  }

  /** Revokes the writer, makes durable what was appended and closes the file. */
  close(): Promise<void> {
    this.revoke()
    return this.#log.close()
  }

  #check(zxid: Zxid): void {
    invariant(!this.#isRevoked, 'A role that has ended appends nothing to the log.', { zxid })
    invariant(
      this.#epochs === undefined || epochOf(zxid) <= this.#epochs.accepted,
      'A member logs only transactions of epochs that it has accepted.',
      { zxid },
    )
  }
}
