import { copyRange } from '@zabra/protocol'

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
  readonly view: DataView
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

  /** Stores a copy; `slab` and `offset` name it. */
  put(data: Uint8Array): void {
    this.#claim(data.length)
    if (data.length > 0) this.#slabs[this.slab]!.bytes.set(data, this.offset)
  }

  /** Stores a copy of the bytes between two offsets. */
  putRange(from: DataView, start: number, end: number): void {
    this.#claim(end - start)
    if (end > start) copyRange(from, start, end, this.#slabs[this.slab]!.view, this.offset)
  }

  /** Writes other bytes over a stored value if they fit its slot exactly as well; else says false. */
  overwrite(slab: number, offset: number, data: Uint8Array): boolean {
    const held = slab < 0 ? undefined : this.#slabs[slab]
    if (held === undefined || held.slot === 0 || data.length === 0 || slotSize(data.length) !== held.slot)
      return false
    held.bytes.set(data, offset)
    return true
  }

  /** What a value lies in, from its offset on. */
  viewOf(slab: number): DataView {
    return slab < 0 ? NO_VIEW : this.#slabs[slab]!.view
  }

  view(slab: number, offset: number, length: number): Uint8Array {
    return slab < 0 ? EMPTY : this.#slabs[slab]!.bytes.subarray(offset, offset + length)
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

  /** Finds a place for so many bytes, which `slab` and `offset` name then. */
  #claim(length: number): void {
    this.slab = -1
    this.offset = 0
    if (length > LARGEST_SLOT) this.slab = this.#add(length, 0)
    else if (length > 0) this.#claimSlot(slotSize(length))
    if (this.slab >= 0) this.#slabs[this.slab]!.live++
  }

  #claimSlot(slot: number): void {
    let own = this.#classes.get(slot)
    if (own === undefined) this.#classes.set(slot, (own = { free: [], filling: -1 }))
    if (own.free.length > 0) {
      this.offset = own.free.pop()!
      this.slab = own.free.pop()!
      return
    }
    const filling = own.filling < 0 ? undefined : this.#slabs[own.filling]
    if (filling === undefined || filling.fresh + slot > SLAB_BYTES) own.filling = this.#add(SLAB_BYTES, slot)
    const held = this.#slabs[own.filling]!
    this.slab = own.filling
    this.offset = held.fresh
    held.fresh += slot
  }

  #add(size: number, slot: number): number {
    const bytes = new Uint8Array(size)
    const id = this.#freeIds.pop() ?? this.#slabs.length
    this.#slabs[id] = { bytes, view: new DataView(bytes.buffer), slot, live: 0, fresh: 0 }
    return id
  }

  #drop(id: number): void {
    this.#slabs[id] = undefined
    this.#freeIds.push(id)
  }
}

const EMPTY = new Uint8Array(0)
const NO_VIEW = new DataView(EMPTY.buffer)

function withoutSlab(free: readonly number[], slab: number): number[] {
  const kept: number[] = []
  for (let i = 0; i < free.length; i += 2) if (free[i] !== slab) kept.push(free[i]!, free[i + 1]!)
  return kept
}
