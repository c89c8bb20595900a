import { ProtocolError } from './error.ts'

const EMPTY: Uint8Array = new Uint8Array(0)

export interface FrameSplitterOptions {
  /** Longest frame in bytes, without its length. A longer one is refused before memory is allocated for it. */
  readonly maxLength: number
  /** Shortest frame in bytes. */
  readonly minLength?: number
  /** Receives one frame. The bytes are a view: copy what must outlive the call. */
  frame(bytes: Uint8Array, start: number, end: number): void
}

/**
 * Splits a stream of chunks into frames (a length of four bytes, then that many bytes). A frame inside one chunk is passed on in place;
 * a frame that spans chunks is collected in a buffer of its size.
 */
export class FrameSplitter {
  readonly #options: FrameSplitterOptions
  readonly #minLength: number
  /** The beginning of an incomplete frame, with its length. */
  #partial = EMPTY
  #filled = 0
  #stopped = false

  constructor(options: FrameSplitterOptions) {
    this.#options = options
    this.#minLength = options.minLength ?? 0
  }

  /** Bytes buffered of an incomplete frame. */
  get pending(): number {
    return this.#filled
  }

  /** Stops: no further frame is passed on, not even from the current chunk. */
  stop(): void {
    this.#stopped = true
    this.#partial = EMPTY
    this.#filled = 0
  }

  /** Processes the next bytes of the stream. Throws a `ProtocolError` and stops when a length is out of bounds. */
  push(chunk: Uint8Array): void {
    let at = this.#filled > 0 ? this.#complete(chunk) : 0
    while (!this.#stopped && chunk.length - at >= 4) {
      const length = this.#checked(readInt(chunk, at))
      const end = at + 4 + length
      if (end > chunk.length) break
      this.#options.frame(chunk, at + 4, end)
      at = end
    }
    if (!this.#stopped && at < chunk.length) this.#keep(chunk, at)
  }

  /** Completes the incomplete frame; returns the offset of the rest of the chunk. */
  #complete(chunk: Uint8Array): number {
    let at = 0
    if (this.#filled < 4) {
      at = this.#fill(chunk, 0, 4)
      if (this.#filled < 4) return at
      this.#grow()
    }
    at = this.#fill(chunk, at, this.#partial.length)
    if (this.#filled < this.#partial.length) return at
    const whole = this.#partial
    this.#partial = EMPTY
    this.#filled = 0
    this.#options.frame(whole, 4, whole.length)
    return at
  }

  #keep(chunk: Uint8Array, at: number): void {
    if (this.#filled > 0) return
    this.#partial = new Uint8Array(4)
    at = this.#fill(chunk, at, 4)
    if (this.#filled < 4) return
    this.#grow()
    this.#fill(chunk, at, this.#partial.length)
  }

  /** Allocates the buffer of the frame, whose length is now known. */
  #grow(): void {
    const grown = new Uint8Array(4 + this.#checked(readInt(this.#partial, 0)))
    grown.set(this.#partial.subarray(0, 4))
    this.#partial = grown
  }

  #fill(chunk: Uint8Array, at: number, until: number): number {
    const taken = Math.min(chunk.length - at, until - this.#filled)
    this.#partial.set(chunk.subarray(at, at + taken), this.#filled)
    this.#filled += taken
    return at + taken
  }

  #checked(length: number): number {
    if (length < this.#minLength || length > this.#options.maxLength) {
      // After an invalid length, frame boundaries are unknown.
      this.stop()
      throw new ProtocolError(
        `Expected a frame of ${this.#minLength} to ${this.#options.maxLength} bytes, got a length of ${length}`,
        0,
        'a frame length',
      )
    }
    return length
  }
}

function readInt(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}
