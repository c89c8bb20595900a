/** Items that are taken out of the order in one step. */
const PER_STEP = 25

/**
 * Keeps the first `limit` of many items by an order, in a heap whose top is the last of them: each item costs a few comparisons, and no
 * more than `limit` are held.
 */
export class FirstItems<T> {
  readonly #limit: number
  readonly #compare: (a: T, b: T) => number
  readonly #heap: T[] = []

  /** `compare` is below zero where `a` comes before `b`. */
  constructor(limit: number, compare: (a: T, b: T) => number) {
    this.#limit = limit
    this.#compare = compare
  }

  get size(): number {
    return this.#heap.length
  }

  /** The last of the items once there are `limit`: those behind it are not kept. */
  get last(): T | undefined {
    return this.#heap.length < this.#limit ? undefined : this.#heap[0]
  }

  add(item: T): void {
    if (this.#heap.length < this.#limit) this.#rise(item)
    else if (this.#limit > 0 && this.#compare(item, this.#heap[0]!) < 0) this.#sink(item)
  }

  /** Returns the items in their order, and keeps none. Yields an empty string for a few of them. */
  *takeSorted(): Generator<string, T[]> {
    const sorted: T[] = []
    while (this.#heap.length > 0) {
      sorted.push(this.#heap[0]!)
      const last = this.#heap.pop()!
      if (this.#heap.length > 0) this.#sink(last)
      if (sorted.length % PER_STEP === 0) yield ''
    }
    return sorted.reverse()
  }

  /** Adds an item at the end, and moves it up. */
  #rise(item: T): void {
    const heap = this.#heap
    let at = heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.#compare(item, heap[parent]!) <= 0) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = item
  }

  /** Puts an item in the place of the top, and moves it down. */
  #sink(item: T): void {
    const heap = this.#heap
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && this.#compare(heap[child + 1]!, heap[child]!) > 0) child++
      if (this.#compare(item, heap[child]!) >= 0) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = item
  }
}
