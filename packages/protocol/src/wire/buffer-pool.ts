/** An array, and a view of the same bytes. */
export interface PooledBuffer {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly view: DataView<ArrayBuffer>
}

/** Sizes are powers of two from 512 bytes to 64 KiB. */
const SMALLEST_BITS = 9
const LARGEST_BITS = 16
/** Most bytes of free buffers in a pool. */
const MAX_FREE_BYTES = 4 << 20

/** Allocates a buffer outside of any pool. */
export function allocateBuffer(bytes: number): PooledBuffer {
  const array = new Uint8Array(bytes)
  return { bytes: array, view: new DataView(array.buffer) }
}

/**
 * A pool of buffers.
 *
 * Optimised: buffers are reused without clearing them.
 * Why: allocating, clearing and collecting an array costs a server more than writing a reply into it.
 * Rules: after `release`, no view of the buffer may be read. Tested against writers without a pool, in `buffer-pool.test.ts`.
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
