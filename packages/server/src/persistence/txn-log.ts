import { epochOf, formatZxid } from '@zabra/protocol'
import {
  DiskError,
  invariant,
  type Cancel,
  type Clock,
  type Disk,
  type Logger,
  type Random,
} from '@zabra/runtime'
import { PieceWriter } from '../core/piece-writer.ts'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { LogFullError } from './errors.ts'
import { LogFile } from './log-file.ts'
import { writeLogHeader } from './log-format.ts'
import type { LogRange } from './log-range.ts'
import { waitForSpace } from './space-probe.ts'
import {
  attachEncodedEntry,
  checksumInSteps,
  writeEncodedEntry,
  writeEntry,
  zxidOfPayload,
} from './txn-codec.ts'

export interface TxnLogOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** The folder that holds `log.*`, `version-2` included. It must exist. */
  readonly folder: string
  /** The last transaction that is in the log or a snapshot; the first append must be above it. */
  readonly lastZxid: Zxid
  /** Grows with the log. */
  readonly range: LogRange
  /** Returns the accepted epoch: no transaction is of a later one. Absent on a standalone server. */
  readonly acceptedEpoch?: () => number
  /** Whether writes are durable when they complete; false with forceSync=no. */
  readonly isDurable: boolean
  readonly preallocateBytes: number
  /**
   * A snapshot is due after a random number of transactions from half of this up to this (disk-format 4.6), so that members do not
   * all write snapshots at the same time. Read anew after each snapshot and in `applySettings`.
   */
  readonly snapCount: () => number
  /** The same in bytes of log files; 0 or less disables it. */
  readonly snapSizeLimitBytes: number
  /** A new file begins once the current one is larger; 0 or less disables it. */
  readonly fileSizeLimitBytes: number
  /** Returns the time of a write that is logged if it takes longer. Read after each write. */
  readonly syncWarningMs: () => number
  /** How long a write waits for more entries; 0 by default. */
  readonly flushDelayMs?: number
  /** Transactions after the newest snapshot: they count towards the next one. */
  readonly sinceSnapshot?: number
  /** Number of entries that ends the wait of `flushDelayMs`. */
  readonly maxBatchSize?: number
}

export interface TxnLogEvents {
  /** Everything up to this transaction survives a power cut. Called once for each batch of entries, whose write took `ms`. */
  durable(zxid: Zxid, entries: number, ms: number): void
  /** Enough was logged since the last roll for a snapshot. The log has begun a new file already. */
  snapshotDue(): void
  /**
   * The disk is full. Every append above `durableZxid` is lost for good: fail those requests; their zxids are free again.
   * Called only when no byte of them can come back. Appends throw a `LogFullError` until `spaceAvailable`.
   */
  diskFull(durableZxid: Zxid, error: LogFullError): void
  /** The disk has space again. */
  spaceAvailable(): void
  /** The disk cannot be trusted any more. Stop the process; the log writes nothing from now on. */
  fatal(error: Error): void
}

export type TxnLogState = 'open' | 'full' | 'failed' | 'closed'

/** Transient errors: no space, no file descriptor. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE'])

/** Encoded entries that are written to the disk in one durable write. */
interface Batch {
  readonly writer: PieceWriter
  /** Whether the batch is the beginning of a new file; its first bytes are the file's header then. */
  readonly startsFile: boolean
  readonly first: Zxid
  last: Zxid
  count: number
  /** Entries whose checksum is computed before the write: that of many bytes at once would hold the event loop. */
  readonly unsummed: { readonly at: number; readonly payload: Uint8Array }[]
}

/** A batch of this many bytes is closed, so that a single write takes a short time. */
const MAX_BATCH_BYTES = 4 << 20
/** A payload of so many bytes, which only the end of a session with many ephemeral nodes may have, is not copied. */
const ATTACHED_BYTES = 2 << 20
/** The buffers of written batches are reused: at most so many, none with more bytes. */
const REUSED_BUFFERS = 2
const MAX_REUSED_BYTES = 1 << 20

/**
 * Appends transactions to `log.*` files during one role, many in one durable write. One write is in flight at a time; what is
 * appended meanwhile, and in the turn of the event loop after it, makes the next one (disk-format 4.7). Entries are encoded straight
 * into the buffer of the newest batch, because an array or a promise for each entry would cost more than encoding it.
 *
 * Begins a new file, and is closed when the role ends; once it is revoked every append throws an `InvariantError`, so no role writes
 * after its end.
 */
export class TxnLog {
  readonly #options: TxnLogOptions
  readonly #events: TxnLogEvents
  readonly #file: LogFile
  /** The batches that are not being written, the newest last; none unless the log is open. */
  #batches: Batch[] = []
  readonly #reusable: PieceWriter[] = []
  #nextStartsFile = true
  /** Entries added since a write last began. */
  #entryCount = 0
  #pendingBytes = 0
  /** Transactions and bytes of files since the last roll, and how many of them make a snapshot due. */
  #txns: number
  #fileBytes = 0
  #txnLimit = 0
  #byteLimit = 0
  #state: TxnLogState = 'open'
  #isRevoked = false
  #hasLostAppends = false
  #fullError: LogFullError | undefined
  /** Ends the last wait for space. */
  #endWait = (): Promise<void> => Promise.resolve()
  #failure: Error | undefined
  #inFlight: Promise<void> | undefined
  /** Number of callers that wait until everything appended is durable. */
  #flushWaiters = 0
  /** When the write in flight began, on the monotonic clock; undefined while there is none. */
  #writingSince: number | undefined
  /** Ends the wait between two batches. */
  #resume: (() => void) | undefined
  #isScheduled = false
  #cancelDelay: Cancel | undefined
  #last: Zxid
  #durable: Zxid

  constructor(options: TxnLogOptions, events: TxnLogEvents) {
    this.#options = options
    this.#events = events
    this.#last = options.lastZxid
    this.#durable = options.lastZxid
    this.#txns = options.sinceSnapshot ?? 0
    this.#drawLimits()
    this.#file = new LogFile(options, (bytes) => (this.#fileBytes += bytes))
  }

  get state(): TxnLogState {
    return this.#isRevoked ? 'closed' : this.#state
  }
  /** The last transaction appended. */
  get lastZxid(): Zxid {
    return this.#last
  }
  /** The last transaction that survives a power cut. */
  get durableZxid(): Zxid {
    return this.#durable
  }
  /** Transactions since the log last began a file for a snapshot. */
  get txnsSinceRoll(): number {
    return this.#txns
  }
  /** Whether an append never became durable because the disk was full. */
  get hasLostAppends(): boolean {
    return this.#hasLostAppends
  }
  /** Why nothing can be written any more; `TxnLogEvents.fatal` was called with it. */
  get failure(): Error | undefined {
    return this.#failure
  }
  /** Bytes appended that are not durable yet. A caller that appends requests of others applies backpressure by this. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /** When the write in flight began, on the monotonic clock; undefined while there is none. */
  get writingSince(): number | undefined {
    return this.#writingSince
  }

  /**
   * Encodes a transaction into the next batch. The write starts at the end of this turn, or a turn after the write in flight has
   * ended. Throws a `LogFullError` while the disk is full, a RangeError when the zxid is not above the last one or skips
   * transactions of its epoch, and an `InvariantError` when the role has ended or has not accepted the epoch.
   */
  append(logged: LoggedTxn): void {
    const { zxid } = logged.header
    const batch = this.#batchForNext(zxid)
    const before = batch.writer.length
    try {
      writeEntry(batch.writer, logged)
    } catch (error) {
      this.#discard(batch, before)
      throw error
    }
    this.#entryAdded(batch, zxid, before)
  }

  /**
   * Adds an encoded transaction (header, record, digest) byte for byte, as `append` does. The bytes must not change until they are
   * durable. Also throws a RangeError when they are not the transaction `zxid`. `adler` is their Adler-32, if it is known.
   */
  appendPayload(zxid: Zxid, payload: Uint8Array, adler?: number): void {
    const inside = zxidOfPayload(payload)
    if (inside !== zxid) {
      const got = inside === undefined ? `${payload.length} bytes` : `0x${formatZxid(inside)}`
      throw new RangeError(`Expected the transaction 0x${formatZxid(zxid)}, got ${got}`)
    }
    const batch = this.#batchForNext(zxid)
    const before = batch.writer.length
    if (payload.length < ATTACHED_BYTES) writeEncodedEntry(batch.writer, payload, adler)
    else {
      attachEncodedEntry(batch.writer, payload, adler ?? 0)
      if (adler === undefined) batch.unsummed.push({ at: before, payload })
    }
    this.#entryAdded(batch, zxid, before)
  }

  /** Begins a new file with the next append, and resets the count towards the next snapshot. */
  roll(): void {
    this.#nextStartsFile = true
    this.#txns = this.#fileBytes = 0
    this.#drawLimits()
  }

  /** Makes every later append throw. */
  revoke(): void {
    this.#isRevoked = true
  }

  /** Resolves when everything appended is durable. Rejects when it is lost. */
  async flush(): Promise<void> {
    await this.#flushPending()
    if (this.#state !== 'open') throw this.#notOpenError()
  }

  /** Revokes the log, makes durable what was appended and closes the file. */
  async close(): Promise<void> {
    this.revoke()
    await this.#flushPending()
    this.#state = 'closed'
    await this.#endWait()
    await this.#file.close()
  }

  /** Waits until everything is written, without a pause between batches. */
  async #flushPending(): Promise<void> {
    this.#flushWaiters++
    try {
      this.#resume?.()
      this.#start()
      while (this.#inFlight) await this.#inFlight
    } finally {
      this.#flushWaiters--
    }
  }

  /** Returns the batch that takes the next entry, which is the transaction `zxid`. */
  #batchForNext(zxid: Zxid): Batch {
    this.#assertMayAppend(zxid)
    const newest = this.#batches.at(-1)
    if (newest !== undefined && !this.#nextStartsFile && newest.writer.length < MAX_BATCH_BYTES) return newest
    const writer = this.#reusable.pop() ?? new PieceWriter(1 << 16)
    const startsFile = this.#nextStartsFile
    const batch: Batch = { writer, startsFile, first: zxid, last: zxid, count: 0, unsummed: [] }
    if (batch.startsFile) writeLogHeader(writer)
    this.#nextStartsFile = false
    this.#batches.push(batch)
    return batch
  }

  #assertMayAppend(zxid: Zxid): void {
    if (this.#isRevoked) invariant(false, 'A role that has ended appends nothing to the log.', { zxid })
    const { acceptedEpoch } = this.#options
    if (acceptedEpoch !== undefined && epochOf(zxid) > acceptedEpoch())
      invariant(false, 'A member logs only transactions of epochs that it has accepted.', { zxid })
    if (this.#state !== 'open') throw this.#notOpenError()
    const last = this.#last
    if (zxid !== last + 1 && epochOf(zxid) <= epochOf(last))
      throw new RangeError(
        `Expected the zxid 0x${formatZxid(last + 1)} or one of a later epoch, got 0x${formatZxid(zxid)}`,
      )
  }

  /** Removes a partially encoded entry, which begins at `length`, and the batch if it has no other entry. */
  #discard(batch: Batch, length: number): void {
    batch.writer.truncate(length)
    if (batch.count > 0) return
    this.#batches.pop()
    this.#nextStartsFile ||= batch.startsFile
  }

  /** Counts the entry of a transaction, which begins at `before` in its batch. */
  #entryAdded(batch: Batch, zxid: Zxid, before: number): void {
    const bytes = batch.writer.length - before
    this.#last = batch.last = zxid
    batch.count++
    this.#entryCount++
    this.#pendingBytes += bytes
    this.#txns++
    this.#options.range.add(zxid, bytes)
    const { snapSizeLimitBytes } = this.#options
    if (this.#txns > this.#txnLimit || (snapSizeLimitBytes > 0 && this.#fileBytes > this.#byteLimit)) {
      this.roll()
      this.#events.snapshotDue()
    }
    this.#schedule()
  }

  /** Draws anew after how much log a snapshot is due: the settings have changed. */
  applySettings(): void {
    this.#drawLimits()
  }

  #drawLimits(): void {
    const { snapCount, snapSizeLimitBytes, random } = this.#options
    this.#txnLimit = fromHalf(snapCount(), random)
    this.#byteLimit = fromHalf(snapSizeLimitBytes, random)
  }

  #schedule(): void {
    if (this.#inFlight || this.#isScheduled) return
    const { flushDelayMs = 0, maxBatchSize = 1000, clock } = this.#options
    if (flushDelayMs > 0 && this.#entryCount < maxBatchSize) {
      this.#cancelDelay ??= clock.after(flushDelayMs, 'log flush delay', () => this.#begin())
      return
    }
    this.#isScheduled = true
    clock.immediate(() => this.#begin())
  }

  #begin(): void {
    this.#isScheduled = false
    this.#cancelDelay?.()
    this.#cancelDelay = undefined
    this.#start()
  }

  #start(): void {
    if (this.#inFlight || this.#batches.length === 0) return
    this.#inFlight = this.#drain()
  }

  async #drain(): Promise<void> {
    try {
      while (this.#batches.length > 0) {
        const batch = this.#batches.shift()!
        this.#entryCount = 0
        let ms: number
        try {
          this.#writingSince = this.#options.clock.monotonic()
          ms = await this.#write(batch)
          this.#writingSince = undefined
        } catch (error) {
          this.#writingSince = undefined
          return await this.#handleFailure(error, batch)
        }
        this.#durable = batch.last
        this.#recycle(batch.writer)
        this.#events.durable(batch.last, batch.count, ms)
        // Requests that arrived during the write are read first and join the next one: fewer writes, larger groups of replies.
        if (this.#batches.length > 0 && this.#flushWaiters === 0)
          await new Promise<void>((resume) => {
            this.#resume = resume
            this.#options.clock.immediate(resume)
          })
      }
    } finally {
      this.#inFlight = undefined
    }
    // Entries appended after the last look at the queue saw a write in flight and have not scheduled one.
    this.#start()
  }

  /** Makes a batch durable. Resolves to the milliseconds that it took. */
  async #write(batch: Batch): Promise<number> {
    const { clock, fileSizeLimitBytes, syncWarningMs, logger } = this.#options
    for (const { at, payload } of batch.unsummed) batch.writer.longNumberAt(at, await this.#checksum(payload))
    const started = clock.monotonic()
    if (batch.startsFile) await this.#file.create(batch.first)
    await this.#file.write(batch.writer.pieces(), batch.startsFile)
    const ms = clock.monotonic() - started
    if (ms > syncWarningMs()) {
      const context = {
        id: 'log.slow-sync',
        ms: Math.round(ms),
        file: this.#file.path,
        bytes: batch.writer.length,
        entries: batch.count,
      }
      logger.warn(
        context,
        `Making ${batch.count} transactions durable took ${Math.round(ms)} ms; every write waits for this disk`,
      )
    }
    // Batches that are queued already go into this file, unless one of them begins a new file anyway.
    if (fileSizeLimitBytes > 0 && this.#file.position > fileSizeLimitBytes)
      this.#nextStartsFile ||= !this.#batches.some(({ startsFile }) => startsFile)
    return ms
  }

  /** Computes the Adler-32 of a large payload, one step in a turn of the event loop. */
  async #checksum(payload: Uint8Array): Promise<number> {
    const steps = checksumInSteps(payload)
    for (;;) {
      const step = steps.next()
      if (step.done === true) return step.value
      await new Promise<void>((resume) => this.#options.clock.immediate(resume))
    }
  }

  /** Reuses the buffer of a batch that is durable. */
  #recycle(writer: PieceWriter): void {
    this.#pendingBytes = this.#batches.reduce((sum, batch) => sum + batch.writer.length, 0)
    if (writer.length > MAX_REUSED_BYTES || this.#reusable.length >= REUSED_BUFFERS) return
    writer.reset()
    this.#reusable.push(writer)
  }

  /** Drops the batches that are not being written; the next one begins a new file. */
  #dropBatches(): void {
    this.#batches = []
    this.#entryCount = this.#pendingBytes = 0
    this.#nextStartsFile = true
  }

  /** Survives a full disk by taking back what is not durable. After any other error the state of the disk is unknown. */
  async #handleFailure(error: unknown, batch: Batch): Promise<void> {
    if (!(error instanceof DiskError) || !TRANSIENT_CODES.has(error.code)) return this.#fail(error)
    const { folder, logger } = this.#options
    const fullError = new LogFullError(folder, error.code, { cause: error })
    this.#state = 'full'
    this.#fullError = fullError
    // The next batch gets a file of its own, so that nothing is ever written over a range that failed.
    this.#dropBatches()
    try {
      await this.#file.rollBack(batch.startsFile)
    } catch (cause) {
      return this.#fail(cause)
    }
    this.#last = this.#durable
    this.#hasLostAppends = true
    this.#options.range.truncate(this.#durable)
    logger.error({ id: 'log.disk-full', folder, code: error.code }, fullError.message)
    this.#events.diskFull(this.#durable, fullError)
    this.#endWait = waitForSpace(this.#options, () => {
      this.#state = 'open'
      this.#fullError = undefined
      logger.info({ folder }, 'There is space for the transaction log again; writes are accepted')
      this.#events.spaceAvailable()
    })
  }

  #fail(cause: unknown): void {
    this.#state = 'failed'
    // What cannot be taken back is no full disk any more, which callers would survive.
    this.#fullError = undefined
    this.#dropBatches()
    const reason = cause instanceof Error ? cause.message : String(cause)
    const sentence = `The transaction log cannot be written: ${reason}. The server stops; check the disk`
    this.#failure = new Error(sentence, { cause })
    this.#events.fatal(this.#failure)
  }

  #notOpenError(): Error {
    return this.#fullError ?? new Error(`Expected a log that is open, got one that is ${this.#state}`)
  }
}

/** Returns a random number from half of `limit` up to it. */
function fromHalf(limit: number, random: Random): number {
  const part = Math.max(1, Math.floor(limit / 2))
  return part + Math.floor((random.below(0x1_0000_0000) / 0x1_0000_0000) * part)
}
