import { adler32 } from '../tables/checksums.ts'
import { copyRange } from './copy.ts'
import { allocateBuffer, type PooledBuffer, type BufferPool } from './buffer-pool.ts'
import { writeText } from './text.ts'

const NOTHING = allocateBuffer(0)

/**
 * Grows one array and fills it.
 *
 * FENCED: a mutable buffer shared by many messages, with lengths patched in afterwards.
 * Why: an array for each message, joined later, costs more than the messages.
 * Rules: `bytes` is a view that the next write may change; `take` hands the bytes over for good; `release` lets whoever shares
 * `rooms` write over them.
 */
export class Writer {
  #room = NOTHING
  #bytes: Uint8Array<ArrayBuffer> = NOTHING.bytes
  #view = NOTHING.view
  #length = 0
  readonly #initial: number
  readonly #rooms: BufferPool | undefined
  /** The size of the next array. It is made when something is written: a connection that is idle has none. */
  #next: number

  /** Its arrays are those of `rooms`, if there are any. */
  constructor(initialCapacity = 1024, rooms?: BufferPool) {
    this.#initial = this.#next = initialCapacity
    this.#rooms = rooms
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

  /** A whole number from -2^53 to 2^53 as a long. */
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
    // Three bytes a unit is the most that text can take; the length is patched in once it is known.
    this.#reserve(4 + value.length * 3)
    const start = this.#length + 4
    const end = writeText(value, this.#bytes, start)
    this.#view.setInt32(this.#length, end - start)
    this.#length = end
  }

  /** Bytes without a length before them. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
  }

  /** The bytes between two offsets, without a length before them. */
  range(bytes: DataView, start: number, end: number): void {
    this.#reserve(end - start)
    copyRange(bytes, start, end, this.#view, this.#length)
    this.#length += end - start
  }

  /** Changes an int that is already written. */
  intAt(position: number, value: number): void {
    this.#view.setInt32(position, value)
  }

  /** Changes a long that is already written. */
  longNumberAt(position: number, value: number): void {
    const high = Math.floor(value / 0x1_0000_0000)
    this.#view.setInt32(position, high)
    this.#view.setUint32(position + 4, value - high * 0x1_0000_0000)
  }

  /** Leaves room for a length and returns what `endFrame` needs. */
  beginFrame(): number {
    const mark = this.#length
    this.int(0)
    return mark
  }

  /** Writes how many bytes have come since `beginFrame` gave `mark`. */
  endFrame(mark: number): void {
    this.#view.setInt32(mark, this.#length - mark - 4)
  }

  /** Drops everything from `length` on, such as a reply that turned out to be an error. */
  truncate(length: number): void {
    this.#length = length
  }

  /** What is written so far, as a view that holds until the next write. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** What is written from an offset on, as a view that holds until what lies there is changed or dropped. */
  bytesFrom(start: number): Uint8Array {
    return this.#bytes.subarray(start, this.#length)
  }

  /** Adler-32 of what is written from an offset on, going on from `previous`. */
  adler32(start: number, previous = 1): number {
    return adler32(this.#bytes, start, this.#length, previous, this.#view)
  }

  /** Hands over what is written and starts anew with an array of its own. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#begin()
    return taken
  }

  /** Forgets what is written, which nobody may look at any more, and gives its array back to `rooms`. */
  release(): void {
    const room = this.#room
    this.#begin()
    if (room !== NOTHING) this.#rooms?.release(room)
  }

  /** Forgets what is written and keeps the array. */
  reset(): void {
    this.#length = 0
  }

  /** Gets room for so many bytes more at once: growing step by step copies what is there each time. */
  reserve(bytes: number): void {
    this.#reserve(bytes)
  }

  /** Leaves so many bytes to be written through `view`, from the offset on that it returns. */
  claim(bytes: number): number {
    this.#reserve(bytes)
    const at = this.#length
    this.#length = at + bytes
    return at
  }

  /** What lies where `claim` says, until the next call. */
  get view(): DataView {
    return this.#view
  }

  #begin(): void {
    this.#next = Math.max(this.#initial, Math.min(this.#length, 65536))
    this.#use(NOTHING)
    this.#length = 0
  }

  #use(room: PooledBuffer): void {
    this.#room = room
    this.#bytes = room.bytes
    this.#view = room.view
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const size = Math.max(needed, this.#bytes.length * 2, this.#next)
    const before = this.#room
    const room = this.#rooms === undefined ? allocateBuffer(size) : this.#rooms.acquire(size)
    if (this.#length > 0) room.bytes.set(this.#bytes.subarray(0, this.#length))
    this.#use(room)
    if (before !== NOTHING) this.#rooms?.release(before)
  }
}
