import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import type { Zxid } from '../types.ts'
import { Entries } from './entries.ts'

/**
 * Returns whether `next` can directly follow `previous`: the next counter, or the first of a later epoch
 * (quorum-protocol 15).
 */
export function isNextZxid(previous: Zxid, next: Zxid): boolean {
  return next === previous + 1
    ? counterOf(next) !== 0
    : counterOf(next) === 1 && epochOf(next) > epochOf(previous)
}

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
  readonly #entries: Entries
  #base: Zxid

  /** `base` is the last transaction in the tree. A `capacity` below 500 is raised to 500. */
  constructor(base: Zxid, capacity: number = MIN_WINDOW) {
    this.capacity = Math.max(MIN_WINDOW, capacity)
    this.#entries = new Entries()
    this.#base = base
  }

  /** The zxid before the oldest transaction in the window. */
  get base(): Zxid {
    return this.#base
  }

  /** The oldest zxid in the window, or `base` when it is empty. */
  get min(): Zxid {
    return this.#entries.length === 0 ? this.#base : this.#entries.zxidAt(0)
  }

  /** The newest zxid in the window, or `base` when it is empty. */
  get max(): Zxid {
    return this.#entries.length === 0 ? this.#base : this.#entries.zxidAt(this.#entries.length - 1)
  }

  get length(): number {
    return this.#entries.length
  }

  zxidAt(index: number): Zxid {
    return this.#entries.zxidAt(index)
  }

  payloadAt(index: number): Uint8Array {
    return this.#entries.payloadAt(index)
  }

  /** Returns the index of the first transaction after `zxid`. */
  indexAfter(zxid: Zxid): number {
    return this.#entries.countUpTo(zxid)
  }

  /** Returns whether a zxid is in the window or its base. */
  contains(zxid: Zxid): boolean {
    if (zxid === this.#base) return true
    const index = this.#entries.countUpTo(zxid) - 1
    return index >= 0 && this.#entries.zxidAt(index) === zxid
  }

  /** Adds the next transaction. Throws a RangeError if it does not directly follow the last one. */
  add(zxid: Zxid, payload: Uint8Array): void {
    const last = this.max
    if (!isNextZxid(last, zxid)) {
      throw new RangeError(
        `Expected the transaction after ${formatZxid(last)}, got ${formatZxid(zxid)}; learners would get a history with a gap`,
      )
    }
    this.#entries.push(zxid, payload)
    if (this.#entries.length <= this.capacity) return
    this.#base = this.#entries.zxidAt(0)
    this.#entries.shift()
  }

  /** Empties the window after the history was truncated or replaced. */
  reset(base: Zxid): void {
    this.#entries.clear()
    this.#base = base
  }
}
