import type { adler32 } from '../tables/adler32.ts'
import { allocateBuffer, copyRange, type BufferPool, type PooledBuffer } from './buffers.ts'
import { writeText } from './text.ts'

const EMPTY = allocateBuffer(0)

/** An array of another owner among the bytes of a writer. */
interface Attachment {
  /** How many bytes of the writer's own array precede it. */
  readonly at: number
  readonly bytes: Uint8Array
}

/**
 * Writes values into an array that grows.
 *
 * Optimised: one mutable buffer for many messages, with lengths patched in afterwards.
 * Why: an array per message, joined later, costs more than the messages.
 * Rules: `bytes` is a view that the next write may change; `take` transfers the bytes to the caller; `release` returns the array to
 * the pool; what is attached must not change until the bytes are dropped. Tested against `DataView`, in `wire.test.ts`.
 */
export class Writer {
  #buffer = EMPTY
  #bytes: Uint8Array<ArrayBuffer> = EMPTY.bytes
  #view = EMPTY.view
  /** Bytes of its own array. */
  #length = 0
  /** In their order. */
  #attachments: Attachment[] = []
  #attachedBytes = 0
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
    return this.#length + this.#attachedBytes
  }

  /** Whether some of the bytes are in arrays of others. */
  get hasAttachments(): boolean {
    return this.#attachedBytes > 0
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
    this.#reserve(8)
    const high = Math.floor(value / 0x1_0000_0000)
    this.#view.setInt32(this.#length, high)
    this.#view.setUint32(this.#length + 4, value - high * 0x1_0000_0000)
    this.#length += 8
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

  /** Writes bytes without their length and without a copy: they must not change until they are sent or dropped. */
  attach(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#attachments.push({ at: this.#length, bytes })
    this.#attachedBytes += bytes.length
  }

  /** Overwrites an int. */
  intAt(position: number, value: number): void {
    this.#view.setInt32(this.#attachedBytes === 0 ? position : this.#own(position), value)
  }

  /** Overwrites a long. */
  longNumberAt(position: number, value: number): void {
    const high = Math.floor(value / 0x1_0000_0000)
    const at = this.#attachedBytes === 0 ? position : this.#own(position)
    this.#view.setInt32(at, high)
    this.#view.setUint32(at + 4, value - high * 0x1_0000_0000)
  }

  /** Reserves the length of a frame. Returns the mark for `endFrame`. */
  beginFrame(): number {
    const mark = this.length
    this.int(0)
    return mark
  }

  /** Writes the length of the frame that began at `mark`. */
  endFrame(mark: number): void {
    this.intAt(mark, this.length - mark - 4)
  }

  /** Drops everything from `length` on, such as a reply that fails half-way. */
  truncate(length: number): void {
    if (this.#attachedBytes > 0) this.#detachFrom(length)
    this.#length = length - this.#attachedBytes
  }

  /** Returns a view of all bytes written, valid until the next write. Copies what is attached. */
  bytes(): Uint8Array {
    this.#join()
    return this.#bytes.subarray(0, this.#length)
  }

  /** Returns views of all bytes written, in their order and without a copy, valid until the next write. */
  pieces(): Uint8Array[] {
    const pieces: Uint8Array[] = []
    let from = 0
    for (const { at, bytes } of this.#attachments) {
      if (at > from) pieces.push(this.#bytes.subarray(from, at))
      pieces.push(bytes)
      from = at
    }
    if (this.#length > from) pieces.push(this.#bytes.subarray(from, this.#length))
    return pieces
  }

  /** Returns a view of the bytes from an offset on, valid until they are overwritten or dropped. */
  bytesFrom(start: number): Uint8Array {
    this.#join()
    return this.#bytes.subarray(start, this.#length)
  }

  /** Returns the checksum of the bytes from an offset on, continuing `previous`. */
  checksum(sum: typeof adler32, start: number, previous = 1): number {
    this.#join()
    return sum(this.#bytes, start, this.#length, previous, this.#view)
  }

  /** Returns the bytes written, which the caller owns, and starts with a new array. */
  take(): Uint8Array {
    const taken = this.bytes()
    this.#begin()
    return taken
  }

  /** Does as `take` for `pieces`, without a copy. */
  takePieces(): Uint8Array[] {
    const taken = this.pieces()
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
    this.#detach()
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

  #begin(): void {
    this.#next = Math.max(this.#initial, Math.min(this.#length, 65536))
    this.#use(EMPTY)
    this.#detach()
    this.#length = 0
  }

  #detach(): void {
    if (this.#attachedBytes === 0) return
    this.#attachments = []
    this.#attachedBytes = 0
  }

  /** Drops what is attached behind the first `length` bytes. */
  #detachFrom(length: number): void {
    for (let last = this.#attachments.at(-1); last !== undefined; last = this.#attachments.at(-1)) {
      if (last.at + this.#attachedBytes <= length) break
      this.#attachments.pop()
      this.#attachedBytes -= last.bytes.length
    }
  }

  /** Returns the offset in its own array of one of its bytes. */
  #own(position: number): number {
    let own = position
    for (const { at, bytes } of this.#attachments) {
      if (own <= at) break
      own = Math.max(at, own - bytes.length)
    }
    return own
  }

  /** Copies what is attached into its own array. */
  #join(): void {
    if (this.#attachedBytes === 0) return
    const pieces = this.takePieces()
    for (const piece of pieces) this.raw(piece)
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
