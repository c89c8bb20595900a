import { epochOf } from '@zabra/protocol'
import type { Clock, Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import {
  addEpochStarts,
  DamageError,
  isSuccessor,
  logsIn,
  pauseAfter,
  readEpochStarts,
  readLog,
  type DataFolders,
  type LogRange,
  type RawTxn,
} from '../persistence/index.ts'
import { LogCursor } from './log-cursor.ts'

/** How long a read of the log holds the event loop at a time, in milliseconds. */
const SLICE_MS = 3

/** Where a log history is read from. */
export interface LogHistorySource {
  readonly disk: Disk
  readonly clock: Clock
  readonly folders: DataFolders
}

/** Holds the range of the log that may be served to learners, and the cursors that read it. */
export class LogHistory {
  readonly #source: LogHistorySource
  readonly #cursors = new Set<LogCursor>()
  /** The transactions that may be served. */
  range: LogRange
  /** The transaction after which the files were found to hold the history: that of the range, or an earlier one. */
  #begin: Zxid
  /** Transactions after the newest snapshot. */
  txnsSinceSnapshot: number

  constructor(source: LogHistorySource, range: LogRange, txnsSinceSnapshot: number) {
    this.#source = source
    this.range = range
    this.#begin = range.after
    this.txnsSinceSnapshot = txnsSinceSnapshot
  }

  /** Replaces the range when the files were replaced or read again. Open cursors keep the old one. */
  reset(range: LogRange, txnsSinceSnapshot: number): void {
    this.range = range
    this.#begin = range.after
    this.txnsSinceSnapshot = txnsSinceSnapshot
  }

  /** Ends the range before the oldest log file: a purge may have removed others. */
  async purged(): Promise<void> {
    const { disk, folders } = this.#source
    const [oldest] = logsIn(await disk.list(folders.logs))
    if (oldest === undefined) return
    this.range.dropBefore(oldest.zxid)
    if (!this.#follows(oldest.zxid, this.#begin)) this.#begin = this.range.after
  }

  /** Stores the last transaction before each epoch in the range. After a restart the range begins behind the newest snapshot. */
  saveEpochs(): Promise<void> {
    const { disk, folders } = this.#source
    return addEpochStarts(disk, folders.snapshots, this.range.epochStarts)
  }

  /** The transaction after which the oldest cursor reads; Infinity without any. Its files must not be purged. */
  get oldestCursor(): Zxid {
    return Math.min(...[...this.#cursors].map(({ after }) => after))
  }

  /**
   * Resolves to whether the log holds every transaction after a zxid, which must be a point of the history. Beyond the range that is so
   * where the files hold all transactions after it up to the snapshot at the begin of the range. Those of an epoch are history if the last
   * one is, since its leader has proposed them one after the other. Before the begin of an epoch files may hold what a snapshot of a leader
   * has rolled back, where Apache ZooKeeper has received it (disk-format H1): the epoch must follow the transaction that `saveEpochs` has
   * stored.
   */
  async hasLogAfter(after: Zxid): Promise<boolean> {
    const { range } = this
    if (after < this.#begin) {
      if (!(await this.#holds(after, range.after))) return false
      if (this.range !== range) return false
      this.#begin = Math.min(this.#begin, after)
    }
    // A purge removes the oldest files.
    const { disk, folders } = this.#source
    const [oldest] = logsIn(await disk.list(folders.logs))
    if (oldest === undefined) return after >= this.range.after
    return this.#follows(oldest.zxid, after)
  }

  /** Whether a log that begins with `first` has all transactions after `after` that are in the history. */
  #follows(first: Zxid, after: Zxid): boolean {
    if (first <= after) return true
    return isSuccessor(first, after) && !this.range.hasBetween(after, first)
  }

  /**
   * Opens a cursor over the transactions after `after` up to `upTo`. `waitUntilDurable` is awaited before the first read. `after` must be
   * in the range, or `hasLogAfter` must have found it before the first read.
   */
  read(after: Zxid, upTo: Zxid, waitUntilDurable: () => Promise<void>): AsyncIterableIterator<RawTxn> {
    const { range } = this
    return this.#read(after, upTo, waitUntilDurable, () => (range === this.range ? this.#begin : range.after))
  }

  /** Resolves to whether the files hold every transaction of the history between two, sound, and no other. */
  async #holds(after: Zxid, upTo: Zxid): Promise<boolean> {
    const { disk, folders } = this.#source
    let last = after
    // Before anything else is read: a purge keeps the files of open cursors.
    const cursor = this.#read(
      after,
      upTo,
      () => Promise.resolve(),
      () => 0,
    )
    try {
      const starts = await readEpochStarts(disk, folders.snapshots)
      if (epochOf(after) < epochOf(upTo) && !starts.has(epochOf(upTo))) return false
      for await (const { zxid } of cursor) {
        if (epochOf(zxid) > epochOf(last) && starts.get(epochOf(zxid)) !== last) return false
        last = zxid
      }
      return epochOf(last) === epochOf(upTo)
    } catch (error) {
      if (error instanceof DamageError) return false
      throw error
    } finally {
      await cursor.return()
    }
  }

  #read(after: Zxid, upTo: Zxid, waitUntilDurable: () => Promise<void>, begin: () => Zxid): LogCursor {
    const { disk, clock, folders } = this.#source
    const folder = folders.logs
    const cursor = new LogCursor(
      after,
      async () => {
        await waitUntilDurable()
        return readLog(disk, folder, after, upTo, pauseAfter(clock, SLICE_MS))
      },
      { begin, range: this.range, folder, upTo },
      () => this.#cursors.delete(cursor),
    )
    this.#cursors.add(cursor)
    return cursor
  }
}
