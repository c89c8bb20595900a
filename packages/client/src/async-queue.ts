/** Returns the new buffer contents when an item does not fit. */
export type OverflowPolicy<T> = (waiting: T[], item: T) => T[]

/**
 * An async queue with one producer and one consumer. Holds at most `limit` items; `overflow` decides what remains
 * when an item does not fit. `end` lets the consumer read the buffered items; `return` drops them.
 */
export class AsyncQueue<T> implements AsyncIterableIterator<T> {
  readonly #limit: number
  readonly #overflow: OverflowPolicy<T>
  readonly #onReturn: () => void
  /** The newest waiting items. */
  #buffer: T[] = []
  /** The items before them, the oldest last: to remove the first of a long array would copy all others, each time. */
  #oldest: T[] = []
  #pendingReads: { resolve(result: IteratorResult<T>): void; reject(error: unknown): void }[] = []
  #ended = false
  #error: unknown

  /** `onReturn` is called once when the consumer stops. */
  constructor(limit: number, overflow: OverflowPolicy<T>, left: () => void = () => {}) {
    this.#limit = limit
    this.#overflow = overflow
    this.#onReturn = left
  }

  push(item: T): void {
    if (this.#ended) return
    const read = this.#pendingReads.shift()
    if (read !== undefined) read.resolve({ done: false, value: item })
    else if (this.#oldest.length + this.#buffer.length < this.#limit) this.#buffer.push(item)
    else {
      this.#buffer = this.#overflow(this.#oldest.reverse().concat(this.#buffer), item)
      this.#oldest = []
    }
  }

  /** Ends the queue. The consumer gets the buffered items first, and then the error, if there is one. */
  end(error?: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.#error = error
    for (const read of this.#pendingReads.splice(0)) {
      if (error === undefined) read.resolve({ done: true, value: undefined })
      else read.reject(this.#takeError())
    }
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#oldest.length === 0) [this.#oldest, this.#buffer] = [this.#buffer.reverse(), this.#oldest]
    if (this.#oldest.length > 0) return Promise.resolve({ done: false, value: this.#oldest.pop()! })
    if (!this.#ended) return new Promise((resolve, reject) => this.#pendingReads.push({ resolve, reject }))
    if (this.#error !== undefined) return Promise.reject(this.#takeError())
    return Promise.resolve({ done: true, value: undefined })
  }

  /** Called when the consumer stops. */
  return(): Promise<IteratorResult<T>> {
    this.#buffer = this.#oldest = []
    this.#error = undefined
    this.end()
    this.#onReturn()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** The error is thrown once; afterwards the queue is done. */
  #takeError(): unknown {
    const error = this.#error
    this.#error = undefined
    return error
  }
}
