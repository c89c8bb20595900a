import { copyRange, allocateBuffer, type Reader } from '@zabra/protocol'

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
export class Arena {
  #shared = allocateBuffer(0)
  #used = 0

  /** A copy of the buffer to which a reader comes next. It stays as it is. */
  copyNext(body: Reader): Uint8Array | null {
    const start = body.skipBuffer()
    if (start === -1) return null
    const end = body.offset
    // `slice` would be no copy where the platform has arrays of its own.
    if (end - start > LONGEST) return new Uint8Array(body.bytes.subarray(start, end))
    const at = this.#claim(end - start)
    copyRange(body.view, start, end, this.#shared.view, at)
    return this.#shared.bytes.subarray(at, at + end - start)
  }

  #claim(length: number): number {
    if (this.#used + length > this.#shared.bytes.length) {
      this.#shared = allocateBuffer(SHARED_BYTES)
      this.#used = 0
    }
    const at = this.#used
    this.#used += length
    return at
  }
}
