import type { Zxid } from '../types.ts'

const MIN_SLOTS = 64
/** An empty queue keeps arrays of at most this many slots. */
const KEPT_SLOTS = 1024

/**
 * Encoded transactions in the order of their zxids, first in, first out.
 *
 * Optimised: a ring of zxids and one of payloads with the same slots, instead of an array of objects.
 * Why: each write passes through such queues, and objects would be most of what the garbage collector works on.
 * Tested against an array, in `entries.test.ts`.
 */
export class Entries {
  #zxids = new Float64Array(MIN_SLOTS)
  #payloads: (Uint8Array | undefined)[] = new Array(MIN_SLOTS).fill(undefined)
  #front = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Returns the zxid at an index, counted from the oldest entry. Does not check bounds. */
  zxidAt(index: number): Zxid {
    return this.#zxids[this.#slot(index)]!
  }

  /** Returns the payload at an index, counted from the oldest entry. Does not check bounds. */
  payloadAt(index: number): Uint8Array {
    return this.#payloads[this.#slot(index)]!
  }

  push(zxid: Zxid, payload: Uint8Array): void {
    if (this.#length === this.#payloads.length) this.#grow()
    const slot = this.#slot(this.#length++)
    this.#zxids[slot] = zxid
    this.#payloads[slot] = payload
  }

  /** Drops the oldest entry. */
  shift(): void {
    this.#payloads[this.#front] = undefined
    this.#front = this.#slot(1)
    if (--this.#length === 0 && this.#payloads.length > KEPT_SLOTS) this.clear()
  }

  clear(): void {
    this.#zxids = new Float64Array(MIN_SLOTS)
    this.#payloads = new Array(MIN_SLOTS).fill(undefined)
    this.#front = this.#length = 0
  }

  /** Counts the entries up to and including `zxid`: the index of the first entry after it. */
  countUpTo(zxid: Zxid): number {
    let [low, high] = [0, this.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.zxidAt(middle) <= zxid) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The number of slots is a power of two. */
  #slot(index: number): number {
    return (this.#front + index) & (this.#payloads.length - 1)
  }

  /** Doubles the slots. Called when all are used. */
  #grow(): void {
    const zxids = new Float64Array(this.#length * 2)
    const payloads = new Array<Uint8Array | undefined>(this.#length * 2).fill(undefined)
    for (let index = 0; index < this.#length; index++) {
      zxids[index] = this.zxidAt(index)
      payloads[index] = this.#payloads[this.#slot(index)]
    }
    this.#zxids = zxids
    this.#payloads = payloads
    this.#front = 0
  }
}
