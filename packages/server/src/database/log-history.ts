import type { Clock, Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { pauseAfter, readLog, type LogRange, type RawTxn } from '../persistence/index.ts'
import { LogCursor } from './log-cursor.ts'

/** How long a read of the log holds the event loop at a time, in milliseconds. */
const SLICE_MS = 3

/** Where a log history is read from. */
export interface LogHistorySource {
  readonly disk: Disk
  readonly clock: Clock
  readonly folder: string
}

/** Holds the range of the log that may be served to learners, and the cursors that read it. */
export class LogHistory {
  readonly #source: LogHistorySource
  readonly #cursors = new Set<LogCursor>()
  /** The transactions that may be served. */
  range: LogRange
  /** Transactions after the newest snapshot. */
  txnsSinceSnapshot: number

  constructor(source: LogHistorySource, range: LogRange, txnsSinceSnapshot: number) {
    this.#source = source
    this.range = range
    this.txnsSinceSnapshot = txnsSinceSnapshot
  }

  /** Replaces the range when the files were replaced or read again. Open cursors keep the old one. */
  reset(range: LogRange, txnsSinceSnapshot: number): void {
    this.range = range
    this.txnsSinceSnapshot = txnsSinceSnapshot
  }

  /** The transaction after which the oldest cursor reads; Infinity without any. Its files must not be purged. */
  get oldestCursor(): Zxid {
    return Math.min(...[...this.#cursors].map(({ after }) => after))
  }

  /** Opens a cursor over the transactions after `after` up to `upTo`. `waitUntilDurable` is awaited before the first read. */
  read(after: Zxid, upTo: Zxid, waitUntilDurable: () => Promise<void>): AsyncIterableIterator<RawTxn> {
    const { disk, clock, folder } = this.#source
    const cursor = new LogCursor(
      after,
      async () => {
        await waitUntilDurable()
        return readLog(disk, folder, after, upTo, pauseAfter(clock, SLICE_MS))
      },
      { logRange: this.range, folder, upTo },
      () => this.#cursors.delete(cursor),
    )
    this.#cursors.add(cursor)
    return cursor
  }
}
