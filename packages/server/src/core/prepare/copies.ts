/** Bytes of one array that many copies share. */
const SHARED_BYTES = 1 << 16
/** Longer data gets an array of its own, so that a transaction that is kept for long keeps little beside it. */
const LONGEST = 1 << 12

/**
 * Copies of data that must outlive the bytes in which they came.
 *
 * FENCED: small copies are views into one array that is filled from the front.
 * Why: an array of its own has its memory outside of the heap; getting it, clearing it and giving it back costs more than
 * all else that is done to prepare a small write.
 * Rules: a copy is never written to again, and no part of an array is handed out twice.
 */
export class Copies {
  #shared = new Uint8Array(0)
  #used = 0

  /** A copy that stays as it is. */
  of(data: Uint8Array): Uint8Array {
    const { length } = data
    if (length > LONGEST) return data.slice()
    if (this.#used + length > this.#shared.length) {
      this.#shared = new Uint8Array(SHARED_BYTES)
      this.#used = 0
    }
    const shared = this.#shared
    const at = this.#used
    this.#used += length
    shared.set(data, at)
    return shared.subarray(at, at + length)
  }
}
