/** An empty queue keeps an array of at most this many slots for its next items. */
const KEPT_SLOTS = 32
const MIN_SLOTS = 4

/**
 * A first-in, first-out queue in a ring buffer that grows.
 *
 * Optimised: a ring whose free slots hold `empty`, instead of an array and the index of its front.
 * Why: tens of thousands of writes a second pass through such queues. Items that have left the front of an array stay reachable
 * until the array is cut, and an old array that was cut keeps its last items until a full garbage collection: young objects
 * survive and grow old for nothing, which made collections of young objects three times as long.
 * Tested against an array, in `ring-buffer.test.ts`.
 */
export class RingBuffer<T> {
  readonly #empty: T
  #items: T[] = []
  #front = 0
  #length = 0

  /** `empty` fills the free slots. For a queue of numbers it is a number, so that the engine stores all slots as numbers. */
  constructor(empty: T) {
    this.#empty = empty
  }

  get length(): number {
    return this.#length
  }

  /** The oldest item; `empty` when there is none. */
  get first(): T {
    return this.#length === 0 ? this.#empty : this.#items[this.#front]!
  }

  /** The newest item; `empty` when there is none. */
  get last(): T {
    return this.#length === 0 ? this.#empty : this.at(this.#length - 1)
  }

  /** Returns the item at an index, counted from the oldest one. Does not check bounds. */
  at(index: number): T {
    return this.#items[this.#slot(index)]!
  }

  /** Replaces the item at an index. Does not check bounds. */
  set(index: number, item: T): void {
    this.#items[this.#slot(index)] = item
  }

  push(item: T): void {
    if (this.#length === this.#items.length) this.#resize(Math.max(MIN_SLOTS, this.#length * 2))
    this.#items[this.#slot(this.#length++)] = item
  }

  /** Removes and returns the oldest item; `empty` when there is none. */
  shift(): T {
    if (this.#length === 0) return this.#empty
    const item = this.#items[this.#front]!
    this.#items[this.#front] = this.#empty
    this.#front = this.#slot(1)
    if (--this.#length === 0 && this.#items.length > KEPT_SLOTS) this.clear()
    return item
  }

  /** Removes the `count` newest items. */
  drop(count: number): void {
    for (let left = count; left > 0; left--) this.set(--this.#length, this.#empty)
  }

  clear(): void {
    this.#items = []
    this.#front = this.#length = 0
  }

  *[Symbol.iterator](): Generator<T> {
    for (let index = 0; index < this.#length; index++) yield this.at(index)
  }

  /** The number of slots is a power of two. */
  #slot(index: number): number {
    return (this.#front + index) & (this.#items.length - 1)
  }

  #resize(slots: number): void {
    const items = new Array<T>(slots).fill(this.#empty)
    for (let index = 0; index < this.#length; index++) items[index] = this.at(index)
    this.#items.fill(this.#empty)
    this.#items = items
    this.#front = 0
  }
}
