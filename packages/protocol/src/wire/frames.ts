import { ProtocolError } from './error.ts'

const EMPTY: Uint8Array = new Uint8Array(0)

export interface FrameSplitterOptions {
  /** Longest frame in bytes, without its length. A longer one is refused before memory is allocated for it. */
  readonly maxLength: number
  /** Shortest frame in bytes. */
  readonly minLength?: number | undefined
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
  /** Where the incomplete frame ends, once its length is known. */
  #frameEnd = 0
  #stopped = false
  #isPaused = false
  /** The bytes that were received while paused. */
  #rest = EMPTY

  constructor(options: FrameSplitterOptions) {
    this.#options = options
    this.#minLength = options.minLength ?? 0
  }

  /** Bytes buffered of an incomplete frame. */
  get pending(): number {
    return this.#filled
  }

  /** Bytes of memory that it holds. */
  get byteSize(): number {
    return this.#partial.length + this.#rest.length
  }

  /** Stops: no further frame is passed on, not even from the current chunk. */
  stop(): void {
    this.#stopped = true
    this.#partial = this.#rest = EMPTY
    this.#filled = 0
  }

  /** Passes on no further frame until `resume`, not even from the current chunk. Bytes are kept. */
  pause(): void {
    this.#isPaused = true
  }

  /** Ends the pause and passes on the frames that were held back. Throws as `push` does. */
  resume(): void {
    this.#isPaused = false
    const rest = this.#rest
    this.#rest = EMPTY
    if (rest.length > 0) this.push(rest)
  }

  /** Processes the next bytes of the stream. Throws a `ProtocolError` and stops when a length is out of bounds. */
  push(chunk: Uint8Array): void {
    if (this.#isPaused) return this.#hold(chunk)
    let at = this.#filled > 0 ? this.#complete(chunk) : 0
    while (!this.#stopped && !this.#isPaused && chunk.length - at >= 4) {
      const length = this.#checked(readInt(chunk, at))
      const end = at + 4 + length
      if (end > chunk.length) break
      this.#options.frame(chunk, at + 4, end)
      at = end
    }
    if (this.#stopped || at >= chunk.length) return
    if (this.#isPaused) this.#hold(chunk.subarray(at))
    else this.#keep(chunk, at)
  }

  /** Appends a copy of bytes to those that wait for `resume`. */
  #hold(bytes: Uint8Array): void {
    if (this.#stopped) return
    const both = new Uint8Array(this.#rest.length + bytes.length)
    both.set(this.#rest)
    both.set(bytes, this.#rest.length)
    this.#rest = both
  }

  /** Completes the incomplete frame; returns the offset of the rest of the chunk. */
  #complete(chunk: Uint8Array): number {
    let at = 0
    if (this.#filled < 4) {
      at = this.#fill(chunk, 0, 4)
      if (this.#filled < 4) return at
      this.#measure()
    }
    at = this.#extend(chunk, at)
    if (this.#filled < this.#frameEnd) return at
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
    this.#measure()
    this.#extend(chunk, at)
  }

  /** Reads the length of the frame, which is complete now. */
  #measure(): void {
    this.#frameEnd = 4 + this.#checked(readInt(this.#partial, 0))
  }

  /** Adds bytes of the frame; returns their end. The buffer grows with what is received: a length alone costs no memory. */
  #extend(chunk: Uint8Array, at: number): number {
    const needed = Math.min(this.#frameEnd, this.#filled + chunk.length - at)
    if (needed > this.#partial.length) {
      const grown = new Uint8Array(Math.min(this.#frameEnd, Math.max(needed, this.#partial.length * 2)))
      grown.set(this.#partial.subarray(0, this.#filled))
      this.#partial = grown
    }
    return this.#fill(chunk, at, this.#frameEnd)
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
