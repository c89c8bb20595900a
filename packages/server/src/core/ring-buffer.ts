/** What an empty queue holds on to for the next ones. */
const KEPT = 32
const SMALLEST = 4

/**
 * A queue in a ring.
 *
 * FENCED: a ring whose free places hold nothing, instead of an array and the index of its front.
 * Why: tens of thousands of writes a second go through such queues. What has left the front of an array is alive for collections
 * until the array is cut, and an old array that was cut keeps what was in it then until a full collection: young objects
 * survive, are copied and grow old for nothing, which made collections of the young three times as long.
 * Oracle: an array, in `fifo.test.ts`.
 */
export class RingBuffer<T> {
  readonly #nothing: T
  #items: T[] = []
  #front = 0
  #length = 0

  /** Places that are free hold `nothing`. In a queue of numbers that is a number, so that they lie in it as numbers. */
  constructor(nothing: T) {
    this.#nothing = nothing
  }

  get length(): number {
    return this.#length
  }

  /** What `shift` would give; `nothing` when the queue is empty. */
  get first(): T {
    return this.#length === 0 ? this.#nothing : this.#items[this.#front]!
  }

  /** What stands so many places behind the first one; there has to be something. */
  at(index: number): T {
    return this.#items[this.#place(index)]!
  }

  /** Puts something else in such a place. */
  set(index: number, item: T): void {
    this.#items[this.#place(index)] = item
  }

  push(item: T): void {
    if (this.#length === this.#items.length) this.#resize(Math.max(SMALLEST, this.#length * 2))
    this.#items[this.#place(this.#length++)] = item
  }

  /** Takes the first one out; `nothing` when the queue is empty. */
  shift(): T {
    if (this.#length === 0) return this.#nothing
    const item = this.#items[this.#front]!
    this.#items[this.#front] = this.#nothing
    this.#front = this.#place(1)
    if (--this.#length === 0 && this.#items.length > KEPT) this.clear()
    return item
  }

  /** Takes so many out from the back. */
  drop(count: number): void {
    for (let left = count; left > 0; left--) this.set(--this.#length, this.#nothing)
  }

  clear(): void {
    this.#items = []
    this.#front = this.#length = 0
  }

  *[Symbol.iterator](): Generator<T> {
    for (let index = 0; index < this.#length; index++) yield this.at(index)
  }

  /** The number of places is a power of two. */
  #place(index: number): number {
    return (this.#front + index) & (this.#items.length - 1)
  }

  #resize(places: number): void {
    const items = new Array<T>(places).fill(this.#nothing)
    for (let index = 0; index < this.#length; index++) items[index] = this.at(index)
    this.#items.fill(this.#nothing)
    this.#items = items
    this.#front = 0
  }
}
