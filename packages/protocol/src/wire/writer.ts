import type { adler32 } from '../tables/adler32.ts'
import { allocateBuffer, copyRange, type BufferPool, type PooledBuffer } from './buffers.ts'
import { writeText } from './text.ts'

const EMPTY = allocateBuffer(0)

/**
 * Writes values into an array that grows.
 *
 * Optimised: one mutable buffer for many messages, with lengths patched in afterwards.
 * Why: an array per message, joined later, costs more than the messages.
 * Rules: `bytes` is a view that the next write may change; `take` transfers the bytes to the caller; `release` returns the array to
 * the pool. Tested against `DataView`, in `wire.test.ts`.
 */
export class Writer {
  #buffer = EMPTY
  #bytes: Uint8Array<ArrayBuffer> = EMPTY.bytes
  #view = EMPTY.view
  #length = 0
  readonly #initial: number
  readonly #pool: BufferPool | undefined
  /** Size of the next array. It is allocated on the first write: idle connections have none. */
  #next: number

  /** Acquires its arrays from `pool`, if it is given. */
  constructor(initialCapacity = 1024, pool?: BufferPool) {
    this.#initial = this.#next = initialCapacity
    this.#pool = pool
  }

  get length(): number {
    return this.#length
  }

  bool(value: boolean): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value ? 1 : 0
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#view.setInt8(this.#length++, value)
  }

  int(value: number): void {
    this.#reserve(4)
    this.#view.setInt32(this.#length, value)
    this.#length += 4
  }

  long(value: bigint): void {
    this.#reserve(8)
    this.#view.setBigInt64(this.#length, value)
    this.#length += 8
  }

  /** Writes an integer from -2^53 to 2^53 as a long. */
  longNumber(value: number): void {
    this.#setLongNumber(this.claim(8), value)
  }

  buffer(value: Uint8Array | null): void {
    if (value === null) return this.int(-1)
    this.int(value.length)
    this.raw(value)
  }

  string(value: string | null): void {
    if (value === null) return this.int(-1)
    // Text takes at most three bytes per unit; the length is patched in afterwards.
    this.#reserve(4 + value.length * 3)
    const start = this.#length + 4
    const end = writeText(value, this.#bytes, start)
    this.#view.setInt32(this.#length, end - start)
    this.#length = end
  }

  /** Writes bytes without their length. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
  }

  /** Writes the bytes between two offsets without their length. */
  range(bytes: DataView, start: number, end: number): void {
    this.#reserve(end - start)
    copyRange(bytes, start, end, this.#view, this.#length)
    this.#length += end - start
  }

  /** Overwrites an int. */
  intAt(position: number, value: number): void {
    this.#view.setInt32(position, value)
  }

  /** Overwrites a long. */
  longNumberAt(position: number, value: number): void {
    this.#setLongNumber(position, value)
  }

  /** Reserves the length of a frame. Returns the mark for `endFrame`. */
  beginFrame(): number {
    this.int(0)
    return this.length - 4
  }

  /** Writes the length of the frame that began at `mark`. */
  endFrame(mark: number): void {
    this.intAt(mark, this.length - mark - 4)
  }

  /** Drops everything from `length` on, such as a reply that fails half-way. */
  truncate(length: number): void {
    this.#length = length
  }

  /** Returns a view of all bytes written, valid until the next write. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Returns a view of the bytes from an offset on, valid until they are overwritten or dropped. */
  bytesFrom(start: number): Uint8Array {
    return this.#bytes.subarray(start, this.#length)
  }

  /** Returns the checksum of the bytes from an offset on, continuing `previous`. */
  checksum(sum: typeof adler32, start: number, previous = 1): number {
    return sum(this.#bytes, start, this.#length, previous, this.#view)
  }

  /** Returns the bytes written, which the caller owns, and starts with a new array. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#begin()
    return taken
  }

  /** Drops the bytes written, whose views become invalid, and returns the array to the pool. */
  release(): void {
    const buffer = this.#buffer
    this.#begin()
    if (buffer !== EMPTY) this.#pool?.release(buffer)
  }

  /** Drops the bytes written and keeps the array. */
  reset(): void {
    this.#length = 0
  }

  /** Reserves space for `bytes` more bytes at once, since each growth copies the array. */
  reserve(bytes: number): void {
    this.#reserve(bytes)
  }

  /** Reserves `bytes` bytes to be written through `view`. Returns their offset in it. */
  claim(bytes: number): number {
    this.#reserve(bytes)
    const at = this.#length
    this.#length = at + bytes
    return at
  }

  /** A view of the array, valid until the next write. */
  get view(): DataView {
    return this.#view
  }

  #setLongNumber(at: number, value: number): void {
    const high = Math.floor(value / 0x1_0000_0000)
    this.#view.setInt32(at, high)
    this.#view.setUint32(at + 4, value - high * 0x1_0000_0000)
  }

  #begin(): void {
    this.#next = Math.max(this.#initial, Math.min(this.#length, 65536))
    this.#use(EMPTY)
    this.#length = 0
  }

  #use(buffer: PooledBuffer): void {
    this.#buffer = buffer
    this.#bytes = buffer.bytes
    this.#view = buffer.view
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const size = Math.max(needed, this.#bytes.length * 2, this.#next)
    const before = this.#buffer
    const buffer = this.#pool === undefined ? allocateBuffer(size) : this.#pool.acquire(size)
    if (this.#length > 0) buffer.bytes.set(this.#bytes.subarray(0, this.#length))
    this.#use(buffer)
    if (before !== EMPTY) this.#pool?.release(before)
  }
}
