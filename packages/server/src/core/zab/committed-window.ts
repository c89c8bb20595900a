import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import type { Zxid } from '../types.ts'
import { Entries } from './entries.ts'

/** Whether `next` may come right after `previous`: one more, or the first one of a later epoch (15). */
export function isNextZxid(previous: Zxid, next: Zxid): boolean {
  return next === previous + 1
    ? counterOf(next) !== 0
    : counterOf(next) === 1 && epochOf(next) > epochOf(previous)
}

/** Fewest transactions that a window keeps (`commitLogCount`). */
export const MIN_WINDOW = 500

/**
 * The last transactions of a server's history, from which learners that lag a little are served without touching the disk.
 *
 * W1 (20, ZOOKEEPER-4925) It has no holes: whatever is applied comes in here, and what does not come right after the last
 * one is refused, since a hole would be sent to learners as history. `base` is the zxid before the first one kept: all up
 * to there is in the tree.
 */
export class CommittedWindow {
  readonly capacity: number
  readonly #entries: Entries
  #base: Zxid

  /** `base` is the last transaction that the tree holds already; `capacity` below 500 is taken as 500. */
  constructor(base: Zxid, capacity: number = MIN_WINDOW) {
    this.capacity = Math.max(MIN_WINDOW, capacity)
    this.#entries = new Entries()
    this.#base = base
  }

  /** What comes right before the oldest one. */
  get base(): Zxid {
    return this.#base
  }

  /** The oldest one kept, or `base` when there is none. */
  get min(): Zxid {
    return this.#entries.length === 0 ? this.#base : this.#entries.zxidAt(0)
  }

  /** The newest one, or `base` when there is none. */
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

  /** The index of the first one after `zxid`. */
  indexAfter(zxid: Zxid): number {
    return this.#entries.countUpTo(zxid)
  }

  /** Whether this transaction is in the history that the window knows: one of its own, or the one before them. */
  contains(zxid: Zxid): boolean {
    if (zxid === this.#base) return true
    const index = this.#entries.countUpTo(zxid) - 1
    return index >= 0 && this.#entries.zxidAt(index) === zxid
  }

  /** Adds the next transaction. Throws a RangeError when it does not come right after the last one. */
  add(zxid: Zxid, payload: Uint8Array): void {
    const last = this.max
    if (!isNextZxid(last, zxid)) {
      throw new RangeError(
        `Expected the transaction that comes after ${formatZxid(last)}, got ${formatZxid(zxid)}; a window with a hole would give learners a false history`,
      )
    }
    this.#entries.push(zxid, payload)
    if (this.#entries.length <= this.capacity) return
    this.#base = this.#entries.zxidAt(0)
    this.#entries.shift()
  }

  /** Starts anew after history was cut or replaced. */
  reset(base: Zxid): void {
    this.#entries.clear()
    this.#base = base
  }
}
