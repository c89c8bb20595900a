/** An array, and a view of the same bytes. */
export interface PooledBuffer {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly view: DataView<ArrayBuffer>
}

/** Sizes are powers of two from 512 bytes to 64 KiB. */
const SMALLEST_BITS = 9
const LARGEST_BITS = 16
/** Bytes of rooms that wait for somebody who needs one. */
const KEPT_BYTES = 4 << 20

/** A room of at least so many bytes that nobody else has. */
export function allocateBuffer(bytes: number): PooledBuffer {
  const array = new Uint8Array(bytes)
  return { bytes: array, view: new DataView(array.buffer) }
}

/**
 * Rooms that are used again.
 *
 * FENCED: arrays go from hand to hand, with what their last owner wrote still in them.
 * Why: getting and clearing an array, and what the collector then has to do, costs a server more than a reply that is written
 * into it.
 * Rules: whoever gives a room back has no view of it any more that anybody reads. Oracle: writers without rooms, in `wire.test.ts`.
 */
export class BufferPool {
  readonly #free: PooledBuffer[][] = Array.from({ length: LARGEST_BITS - SMALLEST_BITS + 1 }, () => [])
  #kept = 0

  /** Bytes that wait here. */
  get freeBytes(): number {
    return this.#kept
  }

  /** A room of at least so many bytes. */
  acquire(bytes: number): PooledBuffer {
    const place = placeOf(bytes)
    if (place >= this.#free.length) return allocateBuffer(bytes)
    const room = this.#free[place]!.pop()
    if (room === undefined) return allocateBuffer(1 << (place + SMALLEST_BITS))
    this.#kept -= room.bytes.length
    return room
  }

  /** Takes a room back. One that is larger than others are, or that there are enough of, is dropped. */
  release(room: PooledBuffer): void {
    const { length } = room.bytes
    const place = placeOf(length)
    if (place >= this.#free.length) return
    if (this.#kept + length > KEPT_BYTES && !this.#dropLarger(place)) return
    this.#free[place]!.push(room)
    this.#kept += length
  }

  /** Without it, many large rooms that were needed once would keep out the small ones, which are always needed. */
  #dropLarger(place: number): boolean {
    for (let larger = this.#free.length - 1; larger > place; larger--) {
      const room = this.#free[larger]!.pop()
      if (room === undefined) continue
      this.#kept -= room.bytes.length
      return true
    }
    return false
  }
}

const placeOf = (bytes: number): number =>
  Math.max(0, 32 - Math.clz32(Math.max(1, bytes) - 1) - SMALLEST_BITS)
