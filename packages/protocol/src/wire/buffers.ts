/** An array, and a view of the same bytes. */
export interface PooledBuffer {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly view: DataView<ArrayBuffer>
}

/** Sizes are powers of two from 512 bytes to 64 KiB. */
const SMALLEST_BITS = 9
const LARGEST_BITS = 16
/** Most bytes of free buffers in a pool: 4 MiB. */
const MAX_FREE_BYTES = 4_194_304

/** Allocates a buffer outside of any pool. */
export function allocateBuffer(bytes: number): PooledBuffer {
  const array = new Uint8Array(bytes)
  return { bytes: array, view: new DataView(array.buffer) }
}

/** Returns the bytes of all parts, in their order, in an array of its own. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/**
 * A pool of buffers.
 *
 * Optimised: buffers are reused without clearing them.
 * Why: allocating, clearing and collecting an array costs a server more than writing a reply into it.
 * Rules: after `release`, no view of the buffer may be read. Tested against writers without a pool, in `buffers.test.ts`.
 */
export class BufferPool {
  readonly #free: PooledBuffer[][] = Array.from({ length: LARGEST_BITS - SMALLEST_BITS + 1 }, () => [])
  #freeBytes = 0

  /** Bytes of the free buffers. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /** Returns a buffer of at least `bytes` bytes. */
  acquire(bytes: number): PooledBuffer {
    const sizeClass = sizeClassOf(bytes)
    if (sizeClass >= this.#free.length) return allocateBuffer(bytes)
    const buffer = this.#free[sizeClass]!.pop()
    if (buffer === undefined) return allocateBuffer(1 << (sizeClass + SMALLEST_BITS))
    this.#freeBytes -= buffer.bytes.length
    return buffer
  }

  /** Returns a buffer to the pool. Drops it when it is larger than 64 KiB or the pool is full of buffers not larger. */
  release(buffer: PooledBuffer): void {
    const { length } = buffer.bytes
    const sizeClass = sizeClassOf(length)
    if (sizeClass >= this.#free.length) return
    if (this.#freeBytes + length > MAX_FREE_BYTES && !this.#dropLarger(sizeClass)) return
    this.#free[sizeClass]!.push(buffer)
    this.#freeBytes += length
  }

  /** Drops a larger free buffer, so that many large ones that were needed once do not keep small ones out of the pool. */
  #dropLarger(sizeClass: number): boolean {
    for (let larger = this.#free.length - 1; larger > sizeClass; larger--) {
      const buffer = this.#free[larger]!.pop()
      if (buffer === undefined) continue
      this.#freeBytes -= buffer.bytes.length
      return true
    }
    return false
  }
}

const sizeClassOf = (bytes: number): number =>
  Math.max(0, 32 - Math.clz32(Math.max(1, bytes) - 1) - SMALLEST_BITS)

/** From this length on, two views and a call of `set` are cheaper than the loop. */
const LONG = 256

/**
 * Copies the bytes between two offsets to `at`.
 *
 * Optimised: copies eight bytes at a time through views; `set` would need a view of the part first.
 * Why: each read of a znode and each znode of a snapshot is such a copy. For 100 bytes it takes a quarter of the time of a loop over
 * bytes, and a little more than half of that of `subarray` and `set`. Tested against `set`, in `wire.test.ts`.
 */
export function copyRange(from: DataView, start: number, end: number, into: DataView, at: number): void {
  if (end - start > LONG) {
    bytesOf(into).set(bytesOf(from).subarray(start, end), at)
    return
  }
  let i = start
  let to = at
  for (; i + 8 <= end; i += 8, to += 8) {
    into.setInt32(to, from.getInt32(i, true), true)
    into.setInt32(to + 4, from.getInt32(i + 4, true), true)
  }
  for (; i < end; i++, to++) into.setInt8(to, from.getInt8(i))
}

const bytesOf = ({ buffer, byteOffset, byteLength }: DataView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)
