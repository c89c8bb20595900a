import { epochOf, formatZxid, Writer } from '@zabra/protocol'
import {
  DiskError,
  type Cancel,
  type Clock,
  type Disk,
  type DiskWriter,
  type Logger,
  type Random,
} from '@zabra/runtime'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { writeEntry, writeEncodedEntry, payloadZxid } from './entries.ts'
import { LogFullError } from './errors.ts'
import { logName } from './file-names.ts'
import { LOG_HEADER_BYTES, paddedSize, writeLogHeader } from './log-format.ts'

export interface TxnLogOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** The folder that holds `log.*`, `version-2` included. It must exist. */
  readonly folder: string
  /** The last transaction that is in the log or a snapshot; the first append must be above it. */
  readonly lastZxid: Zxid
  /** False gives up durability (forceSync=no). */
  readonly durable: boolean
  readonly preallocateBytes: number
  /** A snapshot is due after a random number of transactions from half of this up to this. Asked when the one before is due. */
  readonly snapCount: () => number
  /** The same by bytes of log; 0 or less switches it off. */
  readonly snapSizeLimitBytes: number
  /** A new file is begun once one is larger; 0 or less switches it off. */
  readonly fileSizeLimitBytes: number
  readonly syncWarningMs: number
  /** How long a write waits for others to join; 0 is none. */
  readonly flushDelayMs?: number
  /** Transactions behind the newest snapshot: they count towards the next one. */
  readonly sinceSnapshot?: number
  /** Entries that end the wait. */
  readonly maxBatchSize?: number
}

export interface TxnLogEvents {
  /** Everything up to this transaction survives a power cut. Called once for each batch. */
  durable(zxid: Zxid): void
  /** Enough was logged since the last roll for a snapshot. The log has begun a new file already. */
  snapshotDue(): void
  /**
   * The disk is full. Every append above `durableZxid` is gone for good: fail those requests; their zxids are free again.
   * Called only when nothing of them can come back. Appends throw a `LogFullError` until `space`.
   */
  diskFull(durableZxid: Zxid, error: LogFullError): void
  /** There is space again. */
  spaceAvailable(): void
  /** The disk cannot be trusted any more. Stop the process; nothing is written from now on. */
  fatal(error: Error): void
}

export type TxnLogState = 'open' | 'full' | 'failed' | 'closed'

interface Batch {
  readonly writer: Writer
  readonly startsFile: boolean
  first: Zxid
  last: Zxid
  count: number
}

/** What a disk or a process may lack for a while. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE'])
const PROBE_MS = 1000
const PROBE_BYTES = 1 << 20
/** A batch that has this many bytes gets no more, so that one write is no longer than a disk takes at ease. */
const BATCH_BYTES = 4 << 20

/**
 * Appends transactions to `log.*` files in ZooKeeper's format, many to one durable write.
 *
 * FENCED: entries are encoded straight into the buffer of the next batch, and buffers are used again.
 * Why: an array, a promise or a write for each entry costs more than the entry.
 * Rules: one write is in flight at a time; what is appended meanwhile, and in the turn after it, makes the next one.
 */
export class TxnLog {
  readonly #o: TxnLogOptions
  readonly #events: TxnLogEvents
  #state: TxnLogState = 'open'
  #fullError: LogFullError | undefined
  #queue: Batch[] = []
  #spare: Writer[] = []
  #inFlight: Promise<void> | undefined
  /** How many wait until all that is appended is durable. */
  #flushWaiters = 0
  /** Ends the wait between two batches. */
  #resume: (() => void) | undefined
  #scheduled = false
  #cancelDelay: Cancel | undefined
  #rollNext = true

  #file: DiskWriter | undefined
  #path = ''
  #position = 0
  #size = 0

  #last: Zxid
  #durable: Zxid
  #sinceRoll = 0
  #bytesSinceRoll = 0
  #countLimit = 0
  #bytesLimit = 0
  #collectedEntries = 0
  #pendingBytes = 0
  #appendedBytes = 0
  #failure: Error | undefined

  /** Durable writes so far, and entries in them: their quotient is the mean batch. */
  readonly stats = { flushes: 0, entries: 0, bytes: 0, slowSyncs: 0, lastFlushMs: 0, maxFlushMs: 0, files: 0 }

  constructor(options: TxnLogOptions, events: TxnLogEvents) {
    this.#o = options
    this.#events = events
    this.#last = options.lastZxid
    this.#durable = options.lastZxid
    this.#sinceRoll = options.sinceSnapshot ?? 0
    this.#drawLimits()
  }

  get state(): TxnLogState {
    return this.#state
  }
  /** The last transaction appended. */
  get lastZxid(): Zxid {
    return this.#last
  }
  /** The last transaction that survives a power cut. */
  get durableZxid(): Zxid {
    return this.#durable
  }
  /** Transactions since the last file that a snapshot began. */
  get txnsSinceRoll(): number {
    return this.#sinceRoll
  }
  /** All bytes ever appended. */
  get appendedBytes(): number {
    return this.#appendedBytes
  }
  /** Why nothing can be written any more. */
  get failure(): Error | undefined {
    return this.#failure
  }
  /** The file that is written to, or undefined before the first append. */
  get file(): string | undefined {
    return this.#file === undefined ? undefined : this.#path
  }

  /** Bytes appended that are not durable yet. Whoever appends what others send reads no more of it while this is large. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /**
   * Adds a transaction to the next batch; its write starts in this turn's end, or a turn after the one in flight has ended.
   * Throws a `LogFullError` while the disk is full and a RangeError when the zxid is not above the last one, or leaves some
   * of its epoch out.
   */
  append(logged: LoggedTxn): void {
    const { zxid } = logged.header
    const batch = this.#batchForNext(zxid)
    const before = batch.writer.length
    try {
      writeEntry(batch.writer, logged)
    } catch (error) {
      this.#discardEntry(batch, before)
      throw error
    }
    this.#entryAdded(batch, zxid, before)
  }

  /**
   * Adds a transaction that is encoded already (header, record, digest), byte for byte. The bytes are copied. Throws as
   * `append` does, and a RangeError when they are not the transaction `zxid`. `adler` is their checksum, where it is known.
   */
  appendPayload(zxid: Zxid, payload: Uint8Array, adler?: number): void {
    const inside = payloadZxid(payload)
    if (inside !== zxid) {
      const got = inside === undefined ? `${payload.length} bytes` : `0x${formatZxid(inside)}`
      throw new RangeError(`Expected the transaction 0x${formatZxid(zxid)}, got ${got}`)
    }
    const batch = this.#batchForNext(zxid)
    const before = batch.writer.length
    writeEncodedEntry(batch.writer, payload, adler)
    this.#entryAdded(batch, zxid, before)
  }

  /** Begins a new file with the next append, and counts anew towards the next snapshot. */
  roll(): void {
    this.#rollNext = true
    this.#sinceRoll = 0
    this.#bytesSinceRoll = 0
    this.#drawLimits()
  }

  /** Resolves when all that is appended is durable. Rejects when it is lost. */
  async flush(): Promise<void> {
    await this.#flushPending()
    if (this.#state !== 'open') throw this.#notOpenError()
  }

  /** Writes what is left and closes the file. Appending is over. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return
    await this.#flushPending()
    this.#state = 'closed'
    await this.#closeFile()
  }

  /** Until all is written, with nothing more collected on the way. */
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

  /** What is ready to be read now is read. */
  #yieldToEventLoop(): Promise<void> {
    return new Promise((goOn) => {
      this.#resume = goOn
      this.#o.clock.immediate(goOn)
    })
  }

  #batchForNext(zxid: Zxid): Batch {
    if (this.#state !== 'open') throw this.#notOpenError()
    const last = this.#last
    if (zxid !== last + 1 && (zxid <= last || epochOf(zxid) === epochOf(last)))
      throw new RangeError(
        `Expected the zxid 0x${formatZxid(last + 1)} or one of a later epoch, got 0x${formatZxid(zxid)}`,
      )
    return this.#openBatch(zxid)
  }

  #entryAdded(batch: Batch, zxid: Zxid, before: number): void {
    const bytes = batch.writer.length - before
    this.#pendingBytes += bytes
    this.#appendedBytes += bytes
    batch.last = this.#last = zxid
    batch.count++
    this.#sinceRoll++
    this.#collectedEntries++
    if (this.#snapshotDue()) {
      this.roll()
      this.#events.snapshotDue()
    }
    this.#schedule()
  }

  #openBatch(zxid: Zxid): Batch {
    const newest = this.#queue.at(-1)
    if (newest !== undefined && !this.#rollNext && newest.writer.length < BATCH_BYTES) return newest
    const writer = this.#spare.pop() ?? new Writer(1 << 16)
    const batch: Batch = { writer, startsFile: this.#rollNext, first: zxid, last: zxid, count: 0 }
    if (batch.startsFile) writeLogHeader(writer)
    this.#rollNext = false
    this.#queue.push(batch)
    return batch
  }

  /** An entry that cannot be encoded leaves nothing in its batch, and no batch without an entry. */
  #discardEntry(batch: Batch, length: number): void {
    batch.writer.truncate(length)
    if (batch.count > 0) return
    this.#queue.pop()
    this.#rollNext ||= batch.startsFile
  }

  #schedule(): void {
    if (this.#inFlight || this.#scheduled) return
    const { flushDelayMs = 0, maxBatchSize = 1000, clock } = this.#o
    if (flushDelayMs > 0 && this.#collectedEntries < maxBatchSize) {
      this.#cancelDelay ??= clock.after(flushDelayMs, 'log flush delay', () => this.#begin())
      return
    }
    this.#scheduled = true
    clock.immediate(() => this.#begin())
  }

  #begin(): void {
    this.#scheduled = false
    this.#cancelDelay?.()
    this.#cancelDelay = undefined
    this.#start()
  }

  #start(): void {
    if (this.#inFlight || this.#queue.length === 0 || this.#state !== 'open') return
    this.#inFlight = this.#drain()
  }

  async #drain(): Promise<void> {
    try {
      await this.#writeAll()
    } finally {
      this.#inFlight = undefined
    }
    // What was appended after the last look at the queue found a write in flight, and nobody else starts its own.
    this.#start()
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0 && this.#state === 'open') {
      const batch = this.#queue.shift()!
      this.#collectedEntries = 0
      try {
        await this.#write(batch)
      } catch (error) {
        await this.#handleFailure(error, batch)
        return
      }
      this.#durable = batch.last
      this.#pendingBytes = this.#queue.reduce((sum, { writer }) => sum + writer.length, 0)
      if (batch.writer.length <= 1 << 20 && this.#spare.length < 2) {
        batch.writer.reset()
        this.#spare.push(batch.writer)
      }
      this.#events.durable(batch.last)
      // What has come meanwhile is read first and goes along: fewer writes, and answers of more in one.
      if (this.#queue.length > 0 && this.#flushWaiters === 0) await this.#yieldToEventLoop()
    }
  }

  async #write(batch: Batch): Promise<void> {
    const { clock } = this.#o
    const started = clock.monotonic()
    if (batch.startsFile) await this.#create(batch.first)
    const bytes = batch.writer.bytes()
    await this.#grow(bytes.length)
    await this.#file!.write(bytes, this.#position)
    if (batch.startsFile) await this.#o.disk.syncFolder(this.#o.folder)
    this.#position += bytes.length
    this.#count(batch, bytes.length, clock.monotonic() - started)
    const limit = this.#o.fileSizeLimitBytes
    // What waits already goes into this file, unless a new one waits with it.
    if (limit > 0 && this.#position > limit && !this.#queue.some(({ startsFile }) => startsFile))
      this.#rollNext = true
  }

  async #create(first: Zxid): Promise<void> {
    const { disk, folder, durable } = this.#o
    await this.#closeFile()
    this.#path = `${folder}/${logName(first)}`
    // A file of this name held no transaction that counts, else this one would not be new.
    if (await disk.exists(this.#path)) await disk.remove(this.#path)
    this.#position = 0
    this.#size = LOG_HEADER_BYTES
    this.#file = await disk.openWrite(this.#path, { create: true, durable })
    this.stats.files++
  }

  async #grow(bytes: number): Promise<void> {
    const end = this.#position + bytes
    const size = paddedSize(
      Math.max(this.#position, LOG_HEADER_BYTES),
      end,
      this.#size,
      this.#o.preallocateBytes,
    )
    if (size === this.#size) return
    this.#bytesSinceRoll += size - this.#size
    if (this.#o.preallocateBytes > 0) await this.#file!.truncate(size)
    this.#size = size
  }

  async #closeFile(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.close()
  }

  #count(batch: Batch, bytes: number, ms: number): void {
    const { stats } = this
    stats.flushes++
    stats.entries += batch.count
    stats.bytes += bytes
    stats.lastFlushMs = ms
    stats.maxFlushMs = Math.max(stats.maxFlushMs, ms)
    if (ms <= this.#o.syncWarningMs) return
    stats.slowSyncs++
    const facts = { ms: Math.round(ms), file: this.#path, bytes, entries: batch.count }
    this.#o.logger.warn(
      facts,
      `Making ${batch.count} transactions durable took ${Math.round(ms)} ms; every write waits for this disk`,
    )
  }

  /** A full disk is survived: what was not durable is taken away. After any other failure nothing is known of the disk. */
  async #handleFailure(error: unknown, batch: Batch): Promise<void> {
    if (!(error instanceof DiskError) || !TRANSIENT_CODES.has(error.code)) return this.#fail(error)
    this.#state = 'full'
    this.#fullError = new LogFullError(this.#o.folder, error.code, { cause: error })
    this.#queue = []
    this.#collectedEntries = this.#pendingBytes = 0
    try {
      await this.#undo(batch)
    } catch (cause) {
      return this.#fail(cause)
    }
    this.#last = this.#durable
    this.#o.logger.error({ folder: this.#o.folder, code: error.code }, this.#fullError.message)
    this.#events.diskFull(this.#durable, this.#fullError)
    this.#probeLater()
  }

  async #undo(batch: Batch): Promise<void> {
    const { disk, folder } = this.#o
    if (batch.startsFile) {
      await this.#closeFile()
      if (await disk.exists(this.#path)) {
        await disk.remove(this.#path)
        await disk.syncFolder(folder)
      }
    } else {
      await this.#file!.truncate(this.#position)
      await this.#file!.sync()
      await this.#closeFile()
    }
    // The next batch gets a file of its own, so that nothing is ever written over a range that failed.
    this.#rollNext = true
  }

  #probeLater(): void {
    this.#o.clock.after(PROBE_MS, 'log space probe', () => {
      if (this.#state === 'full') void this.#probe()
    })
  }

  async #probe(): Promise<void> {
    const { disk, folder } = this.#o
    const path = `${folder}/space-probe.tmp`
    try {
      if (await disk.exists(path)) await disk.remove(path)
      const writer = await disk.openWrite(path, { create: true, durable: true })
      try {
        await writer.write(new Uint8Array(PROBE_BYTES), 0)
      } finally {
        await writer.close()
        await disk.remove(path)
      }
    } catch (error) {
      this.#o.logger.debug({ folder, error: String(error) }, 'The disk of the log is still full')
      return this.#probeLater()
    }
    if (this.#state !== 'full') return
    this.#state = 'open'
    this.#fullError = undefined
    this.#o.logger.info({ folder }, 'There is space for the transaction log again; writes are accepted')
    this.#events.spaceAvailable()
  }

  #fail(cause: unknown): void {
    this.#state = 'failed'
    this.#queue = []
    const reason = cause instanceof Error ? cause.message : String(cause)
    const sentence = `The transaction log cannot be written: ${reason}. The server stops; check the disk`
    this.#failure = new Error(sentence, { cause })
    this.#events.fatal(this.#failure)
  }

  #notOpenError(): Error {
    if (this.#fullError) return this.#fullError
    return new Error(`Expected a log that is open, got one that is ${this.#state}`)
  }

  #snapshotDue(): boolean {
    if (this.#sinceRoll > this.#countLimit) return true
    return this.#o.snapSizeLimitBytes > 0 && this.#bytesSinceRoll > this.#bytesLimit
  }

  #drawLimits(): void {
    this.#countLimit = half(this.#o.snapCount(), this.#o.random)
    this.#bytesLimit = half(this.#o.snapSizeLimitBytes, this.#o.random)
  }
}

/** A random number from half of `limit` up to it, so that the servers of an ensemble do not snapshot together. */
function half(limit: number, random: Random): number {
  const part = Math.max(1, Math.floor(limit / 2))
  return part + Math.floor((random.below(0x1_0000_0000) / 0x1_0000_0000) * part)
}
