import { counterOf, epochOf } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import type { EpochStarts } from './epoch-starts.ts'

/** Distance of the marks by which `bytesAfter` estimates. */
const MARK_BYTES = 1 << 20

interface Mark {
  readonly zxid: Zxid
  /** Bytes of all entries of the range up to `zxid`. */
  readonly bytes: number
}

/**
 * The range of the log that is known to be this server's history without a gap: what recovery has read after the snapshot that it
 * loaded, and what was appended since. Files may hold more, such as transactions that a leader's snapshot has rolled back; those
 * are never served to a learner (disk-format H1).
 */
export class LogRange {
  #after: Zxid
  #ends: Zxid[] = []
  /** By bytes. Those of transactions that were removed stay: `#bytes` does not fall either. */
  readonly #marks: Mark[] = []
  #bytes = 0
  #sinceMark = 0
  #last: Zxid

  /** See the property `after`. */
  constructor(after: Zxid) {
    this.#after = after
    this.#last = after
  }

  /** A point of the history: every later transaction is in the log. */
  get after(): Zxid {
    return this.#after
  }

  /** The last transaction of the range. */
  get upTo(): Zxid {
    return this.#last
  }
  /** The last transaction of each epoch, ascending. Since there are no gaps, these tell which transactions the range contains. */
  get epochEnds(): readonly Zxid[] {
    return this.#ends
  }

  /** The last transaction before each epoch that begins in the range: each was committed before the epoch had its first one. */
  get epochStarts(): EpochStarts {
    const starts = new Map<number, Zxid>()
    let before = this.#after
    for (const end of this.#ends) {
      if (epochOf(end) > epochOf(before)) starts.set(epochOf(end), before)
      before = end
    }
    return starts
  }

  /** Adds the next transaction, whose entry has that many bytes. */
  add(zxid: Zxid, bytes: number): void {
    const at = this.#ends.length - 1
    if (at >= 0 && epochOf(this.#last) === epochOf(zxid)) this.#ends[at] = zxid
    else this.#ends.push(zxid)
    this.#last = zxid
    this.#bytes += bytes
    this.#sinceMark += bytes
    if (this.#sinceMark < MARK_BYTES) return
    this.#sinceMark = 0
    this.#marks.push({ zxid, bytes: this.#bytes })
  }

  /** Removes what was added above `zxid`, a transaction of the range, because it did not get into the log. */
  truncate(zxid: Zxid): void {
    this.#ends = this.#ends.filter((end) => epochOf(end) < epochOf(zxid))
    if (zxid > this.after) this.#ends.push(zxid)
    this.#last = Math.max(zxid, this.after)
  }

  /** Ends the range before `first`, the first transaction that the files have after a purge. Does nothing where they have all of it. */
  dropBefore(first: Zxid): void {
    const ends = [this.#after, ...this.#ends]
    // The first transaction of an epoch follows the end of an earlier one, any other the one with the counter below.
    const last = counterOf(first) > 1 ? first - 1 : ends.findLast((end) => end < first)
    if (last === undefined || last <= this.#after || last > this.#last) return
    this.#after = last
    this.#ends = this.#ends.filter((end) => end > last)
  }

  /** Returns whether the history has a transaction between two that it has. Files may lack it: a purge removes the oldest. */
  hasBetween(first: Zxid, second: Zxid): boolean {
    return [this.after, ...this.#ends].some((end) => end > first && end < second)
  }

  /** Returns about how many bytes of log lie after a transaction; never too few. */
  bytesAfter(zxid: Zxid): number {
    const mark = this.#marks.findLast((one) => one.zxid <= zxid)
    return this.#bytes - (mark?.bytes ?? 0)
  }
}
