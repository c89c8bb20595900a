import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'

/** An encoded transaction. */
export interface EncodedTxn {
  readonly zxid: Zxid
  readonly payload: Uint8Array
}

/**
 * Returns whether `next` can directly follow `previous`: the next counter, or the first of a later epoch
 * (quorum-protocol 15).
 */
export function isNextZxid(previous: Zxid, next: Zxid): boolean {
  return next === previous + 1
    ? counterOf(next) !== 0
    : counterOf(next) === 1 && epochOf(next) > epochOf(previous)
}

const NO_PAYLOAD = new Uint8Array(0)

/** Smallest capacity of a window, in transactions (`commitLogCount`). */
export const MIN_WINDOW = 500

/**
 * The last committed transactions of a server (Apache's `committedLog`), from which it synchronises learners that lag a
 * little without reading the disk.
 *
 * It has no gaps: every applied transaction is added, and one that does not directly follow the last one is rejected, since
 * a gap would be sent to learners as history (quorum-protocol 20, ZOOKEEPER-4925). `base` is the zxid before the first
 * transaction in the window; the tree contains everything up to it.
 */
export class CommittedWindow {
  readonly capacity: number
  /** The zxids and the payloads of the same transactions: two rings, so that adding one allocates nothing. */
  readonly #zxids = new RingBuffer<Zxid>(0)
  readonly #payloads = new RingBuffer<Uint8Array>(NO_PAYLOAD)
  #base: Zxid

  /** `base` is the last transaction in the tree. A `capacity` below 500 is raised to 500. */
  constructor(base: Zxid, capacity: number = MIN_WINDOW) {
    this.capacity = Math.max(MIN_WINDOW, capacity)
    this.#base = base
  }

  /** The zxid before the oldest transaction in the window. */
  get base(): Zxid {
    return this.#base
  }

  /** The oldest zxid in the window, or `base` when it is empty. */
  get min(): Zxid {
    return this.#zxids.length === 0 ? this.#base : this.#zxids.first
  }

  /** The newest zxid in the window, or `base` when it is empty. */
  get max(): Zxid {
    return this.#zxids.length === 0 ? this.#base : this.#zxids.last
  }

  /** Returns the transactions after `zxid`. */
  after(zxid: Zxid): EncodedTxn[] {
    const first = this.#countUpTo(zxid)
    return Array.from({ length: this.#zxids.length - first }, (_, i) => ({
      zxid: this.#zxids.at(first + i),
      payload: this.#payloads.at(first + i),
    }))
  }

  /** Returns whether a zxid is in the window or its base. */
  contains(zxid: Zxid): boolean {
    const count = this.#countUpTo(zxid)
    return zxid === (count === 0 ? this.#base : this.#zxids.at(count - 1))
  }

  /** Adds the next transaction. Throws a RangeError if it does not directly follow the last one. */
  add(zxid: Zxid, payload: Uint8Array): void {
    const last = this.max
    if (!isNextZxid(last, zxid)) {
      throw new RangeError(
        `Expected the transaction after ${formatZxid(last)}, got ${formatZxid(zxid)}; learners would get a history with a gap`,
      )
    }
    this.#zxids.push(zxid)
    this.#payloads.push(payload)
    if (this.#zxids.length <= this.capacity) return
    this.#base = this.#zxids.shift()
    this.#payloads.shift()
  }

  /** Empties the window after the history was truncated or replaced. */
  reset(base: Zxid): void {
    this.#zxids.clear()
    this.#payloads.clear()
    this.#base = base
  }

  #countUpTo(zxid: Zxid): number {
    let [low, high] = [0, this.#zxids.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#zxids.at(middle) <= zxid) low = middle + 1
      else high = middle
    }
    return low
  }
}
