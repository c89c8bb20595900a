import { epochOf } from '@zabra/protocol'
import { invariant, type Platform } from '@zabra/runtime'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { TxnLog, type TxnLogEvents, type TxnLogState, type LogRange } from '../persistence/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { LogWriter } from './types.ts'

export interface LogWriterOptions {
  readonly settings: ServerSettings
  readonly ports: Platform
  readonly folder: string
  readonly lastZxid: Zxid
  readonly sinceSnapshot: number
  /** Grows with the log. */
  readonly logRange: LogRange
  /** How many znodes the tree has. */
  readonly nodeCount: () => number
  readonly events: TxnLogEvents
  /** The epoch that the member has accepted; no transaction is of a later one. */
  readonly acceptedEpoch: () => number
}

/** The log in the hands of one role. It begins a file of its own, and is closed for good when the role ends. */
export class RoleLogWriter implements LogWriter {
  readonly #log: TxnLog
  readonly #verified: LogRange
  readonly #accepted: () => number
  #events: TxnLogEvents
  #revoked = false
  #lost = false

  constructor({
    settings,
    ports,
    folder,
    lastZxid,
    sinceSnapshot,
    logRange: verified,
    nodeCount: znodes,
    events,
    acceptedEpoch: accepted,
  }: LogWriterOptions) {
    this.#verified = verified
    this.#events = events
    this.#accepted = accepted
    const { disk, clock, random, logger } = ports
    this.#log = new TxnLog(
      {
        disk,
        clock,
        random,
        logger,
        folder,
        lastZxid,
        sinceSnapshot,
        durable: settings.forceSync,
        preallocateBytes: settings.preAllocSizeBytes,
        snapCount: () => Math.max(settings.snapCount, Math.floor(settings.snapTreeShare * znodes())),
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
          this.#lost = true
          verified.truncate(durable)
          this.#events.diskFull(durable, error)
        },
        spaceAvailable: () => this.#events.spaceAvailable(),
        fatal: (error) => this.#events.fatal(error),
      },
    )
  }

  get lastZxid(): Zxid {
    return this.#log.lastZxid
  }
  get durableZxid(): Zxid {
    return this.#log.durableZxid
  }
  get state(): TxnLogState {
    return this.#revoked ? 'closed' : this.#log.state
  }
  get stats(): TxnLog['stats'] {
    return this.#log.stats
  }
  get file(): string | undefined {
    return this.#log.file
  }
  get pendingBytes(): number {
    return this.#log.pendingBytes
  }
  get sinceSnapshot(): number {
    return this.#log.txnsSinceRoll
  }
  /** Whether something that was appended never became durable, because the disk was full. */
  get hasLostAppends(): boolean {
    return this.#lost
  }

  append(logged: LoggedTxn): void {
    this.#check(logged.header.zxid)
    const before = this.#log.appendedBytes
    this.#log.append(logged)
    this.#verified.add(logged.header.zxid, this.#log.appendedBytes - before)
  }

  appendPayload(zxid: Zxid, payload: Uint8Array, adler?: number): void {
    this.#check(zxid)
    this.#log.appendPayload(zxid, payload, adler)
    this.#verified.add(zxid, payload.length)
  }

  flush(): Promise<void> {
    return this.#log.flush()
  }

  setEvents(events: TxnLogEvents): void {
    this.#events = events
  }

  /** Nothing can be appended any more. */
  revoke(): void {
    this.#revoked = true
  }

  /** Why the disk cannot be trusted; whoever listens has been told. */
  get failure(): Error | undefined {
    return this.#log.failure
  }

  /** Makes durable what was appended and closes the file. */
  close(): Promise<void> {
    this.revoke()
    return this.#log.close()
  }

  #check(zxid: Zxid): void {
    invariant(!this.#revoked, 'A role that has ended appends nothing to the log.', { zxid })
    invariant(
      epochOf(zxid) <= this.#accepted(),
      'A member logs only what is of an epoch that it has accepted.',
      { zxid },
    )
  }
}
