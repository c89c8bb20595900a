/** Bytes of a stream that are handed from where they arrive to where they are taken, one part at a time. */
export class ByteChannel {
  #ready: Uint8Array | undefined
  #taker: { resolve: (bytes: Uint8Array) => void; reject: (error: Error) => void } | undefined
  #ended: Error | undefined

  /** Whether nothing more comes. */
  get ended(): boolean {
    return this.#ended !== undefined
  }

  /** Offers a part, which must not change afterwards; the next one may be offered once this one is taken. */
  push(bytes: Uint8Array): void {
    const taker = this.#taker
    this.#taker = undefined
    if (taker === undefined) this.#ready = bytes
    else taker.resolve(bytes)
  }

  /** The next part. Rejects when there will be none. */
  next(): Promise<Uint8Array> {
    const ready = this.#ready
    this.#ready = undefined
    if (ready !== undefined) return Promise.resolve(ready)
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    return new Promise((resolve, reject) => (this.#taker = { resolve, reject }))
  }

  /** Nothing more comes, for this reason. */
  end(error: Error): void {
    this.#ended ??= error
    this.#taker?.reject(error)
    this.#taker = undefined
  }
}
