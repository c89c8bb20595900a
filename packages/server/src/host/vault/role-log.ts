import { epochOf } from '@zabra/protocol'
import { invariant, type Ports } from '@zabra/runtime'
import type { LoggedTxn, Zxid } from '../../core/types.ts'
import { TxnLog, type TxnLogEvents, type TxnLogState, type VerifiedRange } from '../../log/index.ts'
import type { ServerSettings } from '../../settings/index.ts'
import type { RoleWriter } from './contract.ts'

export interface RoleLogParts {
  readonly settings: ServerSettings
  readonly ports: Ports
  readonly folder: string
  readonly lastZxid: Zxid
  readonly sinceSnapshot: number
  /** Grows with the log. */
  readonly verified: VerifiedRange
  /** How many znodes the tree has. */
  readonly znodes: () => number
  readonly events: TxnLogEvents
  /** The epoch that the member has accepted; no transaction is of a later one. */
  readonly accepted: () => number
}

/** The log in the hands of one role. It begins a file of its own, and is closed for good when the role ends. */
export class RoleLog implements RoleWriter {
  readonly #log: TxnLog
  readonly #verified: VerifiedRange
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
    verified,
    znodes,
    events,
    accepted,
  }: RoleLogParts) {
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
        full: (durable, error) => {
          this.#lost = true
          verified.cutBack(durable)
          this.#events.full(durable, error)
        },
        space: () => this.#events.space(),
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
    return this.#log.sinceRoll
  }
  /** Whether something that was appended never became durable, because the disk was full. */
  get lost(): boolean {
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

  listen(events: TxnLogEvents): void {
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
  end(): Promise<void> {
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
