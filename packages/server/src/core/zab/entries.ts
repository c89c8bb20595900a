import type { Zxid } from '../types.ts'

/**
 * A FIFO queue of transactions in zxid order, in two ring buffers that grow when full: every write passes through three such
 * queues, and a shifted array of objects would cost garbage for each. Indices count from the oldest transaction and are not
 * checked.
 */
export class Entries {
  #zxids: Float64Array
  #payloads: (Uint8Array | undefined)[]
  #mask: number
  #head = 0
  #length = 0

  constructor(capacity = 64) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(2, capacity)))
    this.#zxids = new Float64Array(size)
    this.#payloads = new Array<Uint8Array | undefined>(size).fill(undefined)
    this.#mask = size - 1
  }

  get length(): number {
    return this.#length
  }

  zxidAt(index: number): Zxid {
    return this.#zxids[(this.#head + index) & this.#mask]!
  }

  payloadAt(index: number): Uint8Array {
    return this.#payloads[(this.#head + index) & this.#mask]!
  }

  push(zxid: Zxid, payload: Uint8Array): void {
    if (this.#length > this.#mask) this.#grow()
    const at = (this.#head + this.#length++) & this.#mask
    this.#zxids[at] = zxid
    this.#payloads[at] = payload
  }

  /** Removes the oldest transaction. */
  shift(): void {
    this.#payloads[this.#head] = undefined
    this.#head = (this.#head + 1) & this.#mask
    this.#length--
  }

  clear(): void {
    this.#payloads.fill(undefined)
    this.#head = 0
    this.#length = 0
  }

  /** Returns the number of transactions up to and including `zxid`, which is the index of the first one after it. */
  countUpTo(zxid: Zxid): number {
    let [low, high] = [0, this.#length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.zxidAt(middle) <= zxid) low = middle + 1
      else high = middle
    }
    return low
  }

  #grow(): void {
    const size = (this.#mask + 1) * 2
    const zxids = new Float64Array(size)
    const payloads = new Array<Uint8Array | undefined>(size).fill(undefined)
    for (let i = 0; i < this.#length; i++) {
      zxids[i] = this.zxidAt(i)
      payloads[i] = this.payloadAt(i)
    }
    this.#zxids = zxids
    this.#payloads = payloads
    this.#mask = size - 1
    this.#head = 0
  }
}
