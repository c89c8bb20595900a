import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'

/**
 * Encoded transactions in the order of their zxids, first in, first out. Two ring buffers rather than one of objects: each write
 * passes through three of these queues, and objects would be most of what the garbage collector works on.
 */
export class Entries {
  readonly #zxids = new RingBuffer<Zxid>(0)
  readonly #payloads = new RingBuffer<Uint8Array | undefined>(undefined)

  get length(): number {
    return this.#zxids.length
  }

  /** Returns the zxid at an index, counted from the oldest entry. Does not check bounds. */
  zxidAt(index: number): Zxid {
    return this.#zxids.at(index)
  }

  /** Returns the payload at an index, counted from the oldest entry. Does not check bounds. */
  payloadAt(index: number): Uint8Array {
    return this.#payloads.at(index)!
  }

  push(zxid: Zxid, payload: Uint8Array): void {
    this.#zxids.push(zxid)
    this.#payloads.push(payload)
  }

  /** Drops the oldest entry. */
  shift(): void {
    this.#zxids.shift()
    this.#payloads.shift()
  }

  clear(): void {
    this.#zxids.clear()
    this.#payloads.clear()
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
}
