import { epochOf } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'

const MARK_BYTES = 1 << 20

interface Mark {
  readonly zxid: Zxid
  /** Bytes of all entries up to it. */
  readonly bytes: number
}

/**
 * Which stretch of the log is known to be this server's history without a gap: what recovery has read behind the snapshot that
 * it loaded, and what was appended since. Files may hold more, such as what a leader took back by a snapshot (hazard H1 of
 * Apache ZooKeeper); that is never served to anybody.
 */
export class LogRange {
  readonly after: Zxid
  #ends: Zxid[] = []
  #marks: Mark[] = []
  #bytes = 0
  #sinceMark = 0
  #last: Zxid

  /** `after` is a point of the history: everything behind it is in the log. */
  constructor(after: Zxid) {
    this.after = after
    this.#last = after
  }

  /** The last transaction of the stretch. */
  get upTo(): Zxid {
    return this.#last
  }
  /** The last transaction of each epoch, ascending. Without gaps, these tell which transactions are in the stretch. */
  get epochEnds(): readonly Zxid[] {
    return this.#ends
  }

  /** The next transaction, with the length of its entry. */
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

  /** What was added above a zxid is not in the log after all. It must be one that was added. */
  truncate(zxid: Zxid): void {
    this.#ends = this.#ends.filter((end) => epochOf(end) < epochOf(zxid))
    if (zxid > this.after) this.#ends.push(zxid)
    this.#marks = this.#marks.filter((mark) => mark.zxid <= zxid)
    this.#last = Math.max(zxid, this.after)
  }

  /** About how many bytes of log lie behind a transaction: too many rather than too few. */
  bytesAfter(zxid: Zxid): number {
    const mark = this.#marks.findLast((one) => one.zxid <= zxid)
    return this.#bytes - (mark?.bytes ?? 0)
  }
}
