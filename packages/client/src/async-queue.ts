/** What a full stream does with what no longer fits. */
export type OverflowPolicy<T> = (waiting: T[], item: T) => T[]

/**
 * Items that one producer pushes and one consumer takes, in order. Never grows past `limit`: `overflow` says what is
 * left when it would. Ends with `end`, which lets the consumer take what waits, or with `return`, which drops it.
 */
export class AsyncQueue<T> implements AsyncIterableIterator<T> {
  readonly #limit: number
  readonly #overflow: OverflowPolicy<T>
  readonly #onReturn: () => void
  #buffer: T[] = []
  #pendingReads: { resolve(result: IteratorResult<T>): void; reject(error: unknown): void }[] = []
  #ended = false
  #error: unknown

  /** `left` runs once when the consumer leaves. */
  constructor(limit: number, overflow: OverflowPolicy<T>, left: () => void = () => {}) {
    this.#limit = limit
    this.#overflow = overflow
    this.#onReturn = left
  }

  push(item: T): void {
    if (this.#ended) return
    const taker = this.#pendingReads.shift()
    if (taker !== undefined) taker.resolve({ done: false, value: item })
    else if (this.#buffer.length < this.#limit) this.#buffer.push(item)
    else this.#buffer = this.#overflow(this.#buffer, item)
  }

  /** Nothing follows. With an error, the consumer gets it after what waits. */
  end(error?: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.#error = error
    for (const taker of this.#pendingReads.splice(0)) {
      if (error === undefined) taker.resolve({ done: true, value: undefined })
      else taker.reject(this.#takeError())
    }
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#buffer.length > 0) return Promise.resolve({ done: false, value: this.#buffer.shift()! })
    if (!this.#ended) return new Promise((resolve, reject) => this.#pendingReads.push({ resolve, reject }))
    if (this.#error !== undefined) return Promise.reject(this.#takeError())
    return Promise.resolve({ done: true, value: undefined })
  }

  /** The consumer leaves. */
  return(): Promise<IteratorResult<T>> {
    this.#buffer = []
    this.#error = undefined
    this.end()
    this.#onReturn()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** An error is told once; after it the stream is over. */
  #takeError(): unknown {
    const error = this.#error
    this.#error = undefined
    return error
  }
}
