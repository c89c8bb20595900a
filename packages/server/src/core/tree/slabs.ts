import { copyRange } from '@zabra/protocol'

/**
 * Stores the data of all znodes in few large arrays.
 *
 * Optimised: a slab allocator: values are in slots of size classes, addressed by two numbers.
 * Why: a Uint8Array per znode takes about 200 bytes beside 100 bytes of data, and the garbage collector traverses it.
 * Rules: `view` is valid until the next call that changes the store; copy it to keep it.
 * Tested against a map from handles to copies, in `slabs.test.ts`.
 */
const SLAB_BYTES = 1 << 18
/** The first slab of each size class, of which a small tree needs no other. */
const FIRST_SLAB_BYTES = 1 << 14
/** Longer values have an array of their own, which is never written again: replies hold it until they are sent. */
const LARGEST_SLOT = 1 << 14

interface Slab {
  readonly id: number
  readonly bytes: Uint8Array
  readonly view: DataView
  /** Slot size, or 0 for an array that holds a single value. */
  readonly slot: number
  /** Offsets of the slots that were freed. */
  readonly free: number[]
  live: number
  /** Offset of the first slot that was never used. */
  fresh: number
}

/** The slabs of one slot size. */
interface SlotClass {
  /** Size of the next slab. */
  nextBytes: number
  /** The slab that gets the next values, while it has room. */
  filling: Slab | undefined
  /** Other slabs with free slots. */
  readonly open: Set<Slab>
}

/** Rounds a length up to its size class: steps of 16 up to 128, then quarters of a power of two. */
export function slotSize(length: number): number {
  if (length <= 128) return Math.max(16, (length + 15) & ~15)
  const power = 1 << (31 - Math.clz32(length - 1))
  const step = power >> 2
  return Math.ceil(length / step) * step
}

export class Slabs {
  readonly #slabs: (Slab | undefined)[] = []
  readonly #freeIds: number[] = []
  readonly #classes = new Map<number, SlotClass>()
  /** Slab of the value stored last; its offset is in `offset`. */
  slab = -1
  offset = 0
  /** Bytes of slots without a value. */
  freeBytes = 0

  /** Stores a copy, at `slab` and `offset`. */
  put(data: Uint8Array): void {
    this.#claim(data.length)
    if (data.length > 0) this.#slabs[this.slab]!.bytes.set(data, this.offset)
  }

  /** Stores a copy of the bytes between two offsets. */
  putRange(from: DataView, start: number, end: number): void {
    this.#claim(end - start)
    if (end > start) copyRange(from, start, end, this.#slabs[this.slab]!.view, this.offset)
  }

  /** Overwrites a stored value when the new one has the same size class; else returns false. */
  overwrite(slab: number, offset: number, data: Uint8Array): boolean {
    const held = slab < 0 ? undefined : this.#slabs[slab]
    if (held === undefined || data.length === 0 || slotSize(data.length) !== held.slot) return false
    held.bytes.set(data, offset)
    return true
  }

  /** Returns the buffer that holds a value, from its offset on. */
  viewOf(slab: number): DataView {
    return slab < 0 ? NO_VIEW : this.#slabs[slab]!.view
  }

  view(slab: number, offset: number, length: number): Uint8Array {
    return slab < 0 ? EMPTY : this.#slabs[slab]!.bytes.subarray(offset, offset + length)
  }

  /** Returns the array of a value that has one of its own; undefined for others. */
  ownArray(slab: number): Uint8Array | undefined {
    const held = slab < 0 ? undefined : this.#slabs[slab]
    return held?.slot === 0 ? held.bytes : undefined
  }

  /** Frees a slot. A slab without values is dropped, so that a large deletion frees memory. */
  free(slab: number, offset: number): void {
    if (slab < 0) return
    const held = this.#slabs[slab]!
    held.live--
    if (held.slot === 0) return this.#drop(held)
    this.freeBytes += held.slot
    const { filling, open } = this.#classes.get(held.slot)!
    // The slab that is being filled stays: else a value that is stored and removed in turns would allocate a slab each time.
    if (held.live === 0 && held !== filling) {
      open.delete(held)
      return this.#drop(held)
    }
    held.free.push(offset)
    if (held !== filling) open.add(held)
  }

  /** Allocates `length` bytes, at `slab` and `offset`. */
  #claim(length: number): void {
    this.slab = -1
    this.offset = 0
    if (length === 0) return
    const held = length > LARGEST_SLOT ? this.#add(length, 0) : this.#withRoom(slotSize(length))
    held.live++
    this.freeBytes -= held.slot
    this.slab = held.id
    if (held.free.length > 0) this.offset = held.free.pop()!
    else {
      this.offset = held.fresh
      held.fresh += held.slot
    }
  }

  #withRoom(slot: number): Slab {
    let own = this.#classes.get(slot)
    if (own === undefined) {
      own = { nextBytes: FIRST_SLAB_BYTES, filling: undefined, open: new Set() }
      this.#classes.set(slot, own)
    }
    const { filling, open } = own
    if (filling !== undefined && (filling.free.length > 0 || filling.fresh + slot <= filling.bytes.length))
      return filling
    const [next = this.#add(own.nextBytes, slot)] = open
    own.nextBytes = SLAB_BYTES
    open.delete(next)
    return (own.filling = next)
  }

  #add(size: number, slot: number): Slab {
    const bytes = new Uint8Array(size)
    const view = new DataView(bytes.buffer)
    const id = this.#freeIds.pop() ?? this.#slabs.length
    if (slot > 0) this.freeBytes += size
    return (this.#slabs[id] = { id, bytes, view, slot, free: [], live: 0, fresh: 0 })
  }

  #drop({ id, bytes, slot }: Slab): void {
    if (slot > 0) this.freeBytes -= bytes.length
    this.#slabs[id] = undefined
    this.#freeIds.push(id)
  }
}

const EMPTY = new Uint8Array(0)
const NO_VIEW = new DataView(EMPTY.buffer)
