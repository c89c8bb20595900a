import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { readLog, type LogRange, type RawTxn } from '../persistence/index.ts'
import { LogCursor } from './log-cursor.ts'

/** Holds the range of the log that may be served to learners, and the cursors that read it. */
export class LogHistory {
  readonly #disk: Disk
  readonly #folder: string
  readonly #cursors = new Set<LogCursor>()
  /** The transactions that may be served. */
  range: LogRange
  /** Transactions after the newest snapshot. */
  txnsSinceSnapshot: number

  constructor(disk: Disk, folder: string, range: LogRange, txnsSinceSnapshot: number) {
    this.#disk = disk
    this.#folder = folder
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
    const cursor = new LogCursor(
      after,
      async () => {
        await waitUntilDurable()
        return readLog(this.#disk, this.#folder, after, upTo)
      },
      { logRange: this.range, folder: this.#folder, upTo },
      () => this.#cursors.delete(cursor),
    )
    this.#cursors.add(cursor)
    return cursor
  }
}
