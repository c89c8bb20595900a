import type { Zxid } from '../core/types.ts'

/** Number of transactions whose checksums are kept. Logs repeat only recent ones (disk-format 4.8). */
const CAPACITY = 1 << 14
/** Room at first, which doubles up to `CAPACITY`. */
const FIRST_ROOM = 1 << 8

/** Keeps the checksums of the last entries of a log, to recognise repetitions. */
export class RecentChecksums {
  #zxids = new Float64Array(FIRST_ROOM)
  #sums = new Uint32Array(FIRST_ROOM)
  #count = 0
  #last: Zxid = -1

  /** The newest transaction, or -1 before the first one. */
  get last(): Zxid {
    return this.#last
  }

  /** Adds an entry, unless its zxid is not above that of all earlier ones. */
  add(zxid: Zxid, checksum: number): void {
    if (zxid <= this.#last) return
    if (this.#count === this.#zxids.length && this.#count < CAPACITY) this.#grow()
    const at = this.#count++ & (CAPACITY - 1)
    this.#zxids[at] = zxid
    this.#sums[at] = checksum
    this.#last = zxid
  }

  /** Returns the checksum of a transaction, or undefined for one that was not added or is no longer kept. */
  checksumOf(zxid: Zxid): number | undefined {
    let low = Math.max(0, this.#count - CAPACITY)
    let high = this.#count - 1
    while (low <= high) {
      const middle = Math.floor((low + high) / 2)
      const found = this.#zxids[middle & (CAPACITY - 1)]!
      if (found === zxid) return this.#sums[middle & (CAPACITY - 1)]
      if (found < zxid) low = middle + 1
      else high = middle - 1
    }
    return undefined
  }

  #grow(): void {
    const [zxids, sums] = [this.#zxids, this.#sums]
    this.#zxids = new Float64Array(zxids.length * 2)
    this.#zxids.set(zxids)
    this.#sums = new Uint32Array(sums.length * 2)
    this.#sums.set(sums)
  }
}
