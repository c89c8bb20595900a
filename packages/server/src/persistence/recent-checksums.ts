import type { Zxid } from '../core/types.ts'

/** Transactions whose checksums are remembered at least; repetitions are of the recent past. */
const KEPT = 1 << 14

/** The checksums of the last entries of a log, to know a repetition when one comes. */
export class RecentChecksums {
  readonly #zxids = new Float64Array(KEPT)
  readonly #sums = new Uint32Array(KEPT)
  #count = 0
  #last: Zxid = -1

  /** The newest transaction; -1 before the first one. */
  get last(): Zxid {
    return this.#last
  }

  /** Takes an entry; one that is not above all before it is known already, or forgotten. */
  add(zxid: Zxid, checksum: number): void {
    if (zxid <= this.#last) return
    const at = this.#count++ & (KEPT - 1)
    this.#zxids[at] = zxid
    this.#sums[at] = checksum
    this.#last = zxid
  }

  /** The checksum of a transaction, or undefined for one that was not there or is forgotten. */
  checksumOf(zxid: Zxid): number | undefined {
    let low = Math.max(0, this.#count - KEPT)
    let high = this.#count - 1
    while (low <= high) {
      const middle = Math.floor((low + high) / 2)
      const found = this.#zxids[middle & (KEPT - 1)]!
      if (found === zxid) return this.#sums[middle & (KEPT - 1)]
      if (found < zxid) low = middle + 1
      else high = middle - 1
    }
    return undefined
  }
}
