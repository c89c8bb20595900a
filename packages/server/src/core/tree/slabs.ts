/**
 * The data of all znodes, in few large arrays.
 *
 * FENCED: bytes live in slots of size classes inside slabs and are named by two numbers.
 * Why: a Uint8Array for each znode costs about 200 bytes of object beside 100 bytes of data, and the collector walks it.
 * Rules: `view` is valid until the next call that changes the store; copy it to keep it.
 * Oracle: a map from handles to copies, in `slabs.test.ts`.
 */
const SLAB_BYTES = 1 << 18
/** Data above this size has an array of its own. */
const LARGEST_SLOT = 1 << 14

interface Slab {
  readonly bytes: Uint8Array
  /** Slot size, or 0 for an array that holds one value alone. */
  readonly slot: number
  live: number
  /** Slots that were never used begin here. */
  fresh: number
}

/** Rounds up to a class: steps of 16 up to 128, then quarters of a power of two. */
export function slotSize(length: number): number {
  if (length <= 128) return Math.max(16, (length + 15) & ~15)
  const power = 1 << (31 - Math.clz32(length - 1))
  const step = power >> 2
  return Math.ceil(length / step) * step
}

export class Slabs {
  readonly #slabs: (Slab | undefined)[] = []
  readonly #freeIds: number[] = []
  /** For each slot size: freed slots as pairs of slab and offset, and the slab that is being filled. */
  readonly #classes = new Map<number, { free: number[]; filling: number }>()
  /** The slab of the value stored last; its offset is `offset`. */
  slab = -1
  offset = 0

  /** Stores a copy of the bytes between two offsets; `slab` and `offset` name it. */
  put(data: Uint8Array, start = 0, end = data.length): void {
    const length = end - start
    if (length === 0) {
      this.slab = -1
      this.offset = 0
      return
    }
    if (length > LARGEST_SLOT) {
      this.slab = this.#add({ bytes: data.slice(start, end), slot: 0, live: 1, fresh: 0 })
      this.offset = 0
      return
    }
    this.#claim(slotSize(length))
    copy(data, start, end, this.#slabs[this.slab]!.bytes, this.offset)
  }

  /** Writes other bytes over a stored value if they fit its slot exactly as well; else says false. */
  overwrite(slab: number, offset: number, data: Uint8Array): boolean {
    const held = slab < 0 ? undefined : this.#slabs[slab]
    if (held === undefined || held.slot === 0 || data.length === 0 || slotSize(data.length) !== held.slot)
      return false
    copy(data, 0, data.length, held.bytes, offset)
    return true
  }

  /** The array that a value lies in. */
  bytesOf(slab: number): Uint8Array {
    return slab < 0 ? EMPTY : this.#slabs[slab]!.bytes
  }

  view(slab: number, offset: number, length: number): Uint8Array {
    return this.bytesOf(slab).subarray(offset, offset + length)
  }

  /** Gives a slot back. A slab without live values is dropped, so memory returns after a large deletion. */
  free(slab: number, offset: number): void {
    if (slab < 0) return
    const held = this.#slabs[slab]!
    held.live--
    if (held.slot === 0) return this.#drop(slab)
    const own = this.#classes.get(held.slot)!
    if (held.live === 0 && own.filling !== slab) {
      own.free = withoutSlab(own.free, slab)
      return this.#drop(slab)
    }
    own.free.push(slab, offset)
  }

  #claim(slot: number): void {
    let own = this.#classes.get(slot)
    if (own === undefined) this.#classes.set(slot, (own = { free: [], filling: -1 }))
    if (own.free.length > 0) {
      this.offset = own.free.pop()!
      this.slab = own.free.pop()!
    } else {
      let held = own.filling < 0 ? undefined : this.#slabs[own.filling]
      if (held === undefined || held.fresh + slot > held.bytes.length) {
        held = { bytes: new Uint8Array(SLAB_BYTES), slot, live: 0, fresh: 0 }
        own.filling = this.#add(held)
      }
      this.slab = own.filling
      this.offset = held.fresh
      held.fresh += slot
    }
    this.#slabs[this.slab]!.live++
  }

  #add(slab: Slab): number {
    const id = this.#freeIds.pop() ?? this.#slabs.length
    this.#slabs[id] = slab
    return id
  }

  #drop(id: number): void {
    this.#slabs[id] = undefined
    this.#freeIds.push(id)
  }
}

const EMPTY = new Uint8Array(0)

function withoutSlab(free: readonly number[], slab: number): number[] {
  const kept: number[] = []
  for (let i = 0; i < free.length; i += 2) if (free[i] !== slab) kept.push(free[i]!, free[i + 1]!)
  return kept
}

/** A loop beats the call of `set` for what most znodes hold. */
function copy(data: Uint8Array, start: number, end: number, into: Uint8Array, at: number): void {
  // A view for a part of an array costs more than a longer loop.
  const whole = end - start === data.length
  if (end - start > (whole ? 96 : 192)) into.set(whole ? data : data.subarray(start, end), at)
  else for (let i = start, to = at; i < end; i++, to++) into[to] = data[i]!
}
