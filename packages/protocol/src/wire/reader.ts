import { ProtocolError } from './error.ts'
import { readText } from './text.ts'

/**
 * A cursor over bytes that the caller owns.
 *
 * Optimised: one mutable cursor for many frames, which copies nothing and allocates results only.
 * Why: a reader and a view per frame cost more than decoding a small reply.
 * Rules: `buffer` and `raw` return views; copy them to keep them. `reset` starts on other bytes. Tested against `DataView`, in
 * `wire.test.ts`.
 */
export class Reader {
  #bytes: Uint8Array
  #view: DataView
  /** Offset of the next value. */
  offset: number
  #start: number
  #end: number
  /** Longest `string` or `buffer` that is accepted. */
  readonly maxElement: number

  constructor(bytes: Uint8Array = new Uint8Array(0), start = 0, end = bytes.length, maxElement = 0x7fffffff) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.offset = start
    this.#start = start
    this.#end = end
    this.maxElement = maxElement
  }

  /** Starts on other bytes. Allocates only when they are in another array. */
  reset(bytes: Uint8Array, start = 0, end = bytes.length): this {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    }
    this.offset = start
    this.#start = start
    this.#end = end
    return this
  }

  /** As `reset`, with bytes that are often views of one array: an allocation for each array only. Offsets are those of the array. */
  resetToView(bytes: Uint8Array): this {
    const { buffer, byteOffset } = bytes
    if (buffer !== this.#bytes.buffer || this.#bytes.length !== buffer.byteLength) {
      this.#bytes = new Uint8Array(buffer)
      this.#view = new DataView(buffer)
    }
    this.offset = this.#start = byteOffset
    this.#end = byteOffset + bytes.length
    return this
  }

  /** The array that it reads; offsets refer to it. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** A view of the same array. */
  get view(): DataView {
    return this.#view
  }

  get start(): number {
    return this.#start
  }

  get end(): number {
    return this.#end
  }

  get remaining(): number {
    return this.#end - this.offset
  }

  bool(): boolean {
    const at = this.#take(1, 'a bool')
    return this.#bytes[at] !== 0
  }

  /** A signed byte. */
  byte(): number {
    return this.#view.getInt8(this.#take(1, 'a byte'))
  }

  int(): number {
    const at = this.offset
    if (at + 4 > this.#end) this.#short(4, 'an int')
    this.offset = at + 4
    return this.#view.getInt32(at)
  }

  long(): bigint {
    return this.#view.getBigInt64(this.#take(8, 'a long'))
  }

  /** Reads a long that is exact as a number: from -2^53 to 2^53. */
  longNumber(): number {
    const at = this.#take(8, 'a long')
    const value = this.#view.getInt32(at) * 0x1_0000_0000 + this.#view.getUint32(at + 4)
    if (!Number.isSafeInteger(value)) {
      this.offset = at
      this.fail(`Expected a number from -2^53 to 2^53, got ${this.#view.getBigInt64(at)}`, 'a long')
    }
    return value
  }

  /** Returns a view of a buffer, or null. Copy it to keep it. */
  buffer(): Uint8Array | null {
    const length = this.#length('a buffer')
    if (length === -1) return null
    const at = this.#take(length, 'a buffer')
    return this.#bytes.subarray(at, at + length)
  }

  /** Returns a copy of a buffer, or null. For short ones a loop is faster than a view and `set`. */
  bufferCopy(): Uint8Array<ArrayBuffer> | null {
    const length = this.#length('a buffer')
    if (length === -1) return null
    const at = this.#take(length, 'a buffer')
    const copy = new Uint8Array(length)
    if (length > 24) copy.set(this.#bytes.subarray(at, at + length))
    else for (let i = 0; i < length; i++) copy[i] = this.#bytes[at + i]!
    return copy
  }

  string(): string | null {
    const length = this.#length('a string')
    if (length === -1) return null
    const at = this.#take(length, 'a string')
    return readText(this.#bytes, at, at + length, this.#view)
  }

  /** Skips a string or buffer. Returns the offset of its first byte, -1 for null; its bytes end at `offset`. */
  skipBuffer(): number {
    const length = this.#length('a buffer')
    return length === -1 ? -1 : this.#take(length, 'a buffer')
  }

  /** Reads the count of a vector; -1 is null. Other negative counts read as 0, as in Apache. */
  vectorLength(): number {
    const count = this.int()
    return count < -1 ? 0 : count
  }

  /** Skips the next bytes if they equal `expected`; else returns false and does not advance. */
  skipIfEqual(expected: Uint8Array): boolean {
    const at = this.offset
    if (at + expected.length > this.#end) return false
    for (let i = 0; i < expected.length; i++) if (this.#bytes[at + i] !== expected[i]) return false
    this.offset = at + expected.length
    return true
  }

  /** Returns a view of the next `length` bytes, which have no length before them. */
  raw(length: number): Uint8Array {
    if (length < 0) this.fail(`Expected a length of 0 or more, got ${length}`, 'bytes')
    const at = this.#take(length, 'bytes')
    return this.#bytes.subarray(at, at + length)
  }

  /** Throws a `ProtocolError` for the current offset. */
  fail(message: string, field: string): never {
    throw new ProtocolError(message, this.offset - this.#start, field)
  }

  #length(field: string): number {
    const length = this.int()
    if (length < -1 || length > this.maxElement) {
      this.offset -= 4
      this.fail(`Expected a length from -1 to ${this.maxElement}, got ${length}`, field)
    }
    return length
  }

  #take(length: number, field: string): number {
    const at = this.offset
    if (at + length > this.#end) this.#short(length, field)
    this.offset = at + length
    return at
  }

  #short(length: number, field: string): never {
    this.fail(`Expected ${length} more bytes, got ${this.#end - this.offset}`, field)
  }
}
