import { copyBytes } from './copy-bytes.ts'
import type { Prng } from './prng.ts'

const SECTOR = 512

type Change =
  | { readonly kind: 'write'; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: 'truncate'; readonly length: number }

/** A byte array that grows in place. */
class GrowableBytes {
  #bytes = new Uint8Array(0)
  length = 0

  view(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }

  apply(change: Change): void {
    if (change.kind === 'truncate') return this.#resize(change.length)
    const end = change.position + change.bytes.length
    if (change.bytes.length > 0 && end > this.length) this.#resize(end)
    this.#bytes.set(change.bytes, change.position)
  }

  copyFrom(other: GrowableBytes): void {
    this.#bytes = other.view().slice()
    this.length = other.length
  }

  #resize(length: number): void {
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(length, this.#bytes.length * 2))
      grown.set(this.view())
      this.#bytes = grown
    }
    if (length < this.length) this.#bytes.fill(0, length, this.length)
    this.length = length
  }
}

/**
 * What a power cut did to the unsynced part of a file: nothing to lose, all lost, torn, sectors reordered, or sectors
 * reordered and corrupted.
 */
export type PowerLoss = 'clean' | 'lost' | 'torn' | 'reordered' | 'rotten'

/** A file: the contents that programs see, the durable contents, and the changes in between. */
export class FileImage {
  readonly #seen = new GrowableBytes()
  readonly #durable = new GrowableBytes()
  #pending: Change[] = []
  /** Simulated time of the last change that a program has made. */
  modifiedAt = 0
  /** Offset of the first byte at which the two contents may differ. */
  #changedFrom = Infinity
  /** Whether a failed sync has left contents that are not durable and will not become so. */
  #hasDropped = false
  /** Counts changes of the durable contents, for readers that cache what they hold. */
  durableVersion = 0
  /** Counts events that made the durable contents shorter; readers that cache an offset start again. */
  truncations = 0
  /** Offset of the first byte that power cuts since the last complete sync could change. */
  firstUnsyncedByte = Infinity

  get length(): number {
    return this.#seen.length
  }

  get bytes(): Uint8Array {
    return this.#seen.view()
  }

  get durableBytes(): Uint8Array {
    return this.#durable.view()
  }

  get pending(): number {
    return this.#pending.length
  }

  write(position: number, bytes: Uint8Array): void {
    this.#change({ kind: 'write', position, bytes: copyBytes(bytes) })
  }

  truncate(length: number): void {
    this.#change({ kind: 'truncate', length })
  }

  /** Makes the first `count` pending changes durable: those present when the sync began. */
  sync(count: number): void {
    for (const change of this.#pending.splice(0, count)) {
      if (change.kind === 'truncate') this.truncations++
      this.#durable.apply(change)
      this.durableVersion++
    }
    if (this.#pending.length > 0) return
    this.firstUnsyncedByte = Infinity
    if (!this.#hasDropped) this.#changedFrom = Infinity
  }

  /** Drops the pending changes: after a failed sync the system forgets dirty pages and never writes them. */
  dropPending(): void {
    this.#hasDropped ||= this.#pending.length > 0
    this.#pending = []
  }

  /**
   * Applies a power cut. Of the unsynced changes a prefix survives, cut at any byte. With `reordersSectors` each sector
   * survives independently of earlier ones and its new bytes may be corrupted. Bytes that were durable and not
   * overwritten never change.
   */
  losePower(prng: Prng, wild: boolean): PowerLoss {
    this.firstUnsyncedByte = Math.min(this.firstUnsyncedByte, this.#firstDifference())
    if (this.#pending.length === 0) {
      this.#restoreDurable()
      return 'clean'
    }
    const mood = prng.pickWeighted({
      nothing: 3,
      everything: 1,
      prefix: 3,
      sectors: wild ? 6 : 0,
      rotten: wild ? 4 : 0,
    })
    const keep = prng.below(this.#pending.length + 1)
    this.#pending.forEach((change, index) => {
      if (mood === 'nothing' || (mood === 'prefix' && index > keep)) return
      if (mood === 'everything' || (mood === 'prefix' && index < keep)) return this.#durable.apply(change)
      if (change.kind === 'truncate') {
        if (prng.chance(0.5)) this.#durable.apply(change)
        return
      }
      if (mood === 'prefix') {
        const bytes = change.bytes.subarray(0, prng.below(change.bytes.length + 1))
        this.#durable.apply({ ...change, bytes })
      } else this.#keepSectors(change.position, change.bytes, prng, mood === 'rotten')
    })
    this.#pending = []
    this.truncations++
    this.durableVersion++
    this.#restoreDurable()
    if (mood === 'sectors' || mood === 'rotten') return mood === 'sectors' ? 'reordered' : 'rotten'
    return mood === 'nothing' ? 'lost' : 'torn'
  }

  /** Makes the durable contents those that programs see. */
  #restoreDurable(): void {
    if (this.#changedFrom < Infinity) this.#seen.copyFrom(this.#durable)
    this.#changedFrom = Infinity
    this.#hasDropped = false
  }

  #keepSectors(position: number, bytes: Uint8Array, prng: Prng, rotten: boolean): void {
    for (let at = 0; at < bytes.length;) {
      const length = Math.min(bytes.length - at, SECTOR - ((position + at) % SECTOR))
      if (prng.chance(0.6)) {
        const sector = bytes.slice(at, at + length)
        // A sector in flight when the power fails may hold anything.
        if (rotten && prng.chance(0.3)) this.#corrupt(sector, position + at, prng)
        this.#durable.apply({ kind: 'write', position: position + at, bytes: sector })
      }
      at += length
    }
  }

  /** Flips one bit in the new bytes of a sector, if there are any. */
  #corrupt(sector: Uint8Array, position: number, prng: Prng): void {
    const [at, bit] = [prng.below(sector.length), 1 << prng.below(8)]
    const durable = this.#durable.view()
    if (position + at >= durable.length || durable[position + at] !== sector[at]) sector[at]! ^= bit
  }

  /** Returns the offset of the first byte that differs from the durable contents. */
  #firstDifference(): number {
    const [seen, durable] = [this.#seen.view(), this.#durable.view()]
    const common = Math.min(seen.length, durable.length)
    for (let at = Math.min(this.#changedFrom, common); at < common; at++)
      if (seen[at] !== durable[at]) return at
    return common
  }

  #change(change: Change): void {
    const from = change.kind === 'write' ? Math.min(change.position, this.#seen.length) : change.length
    this.#changedFrom = Math.min(this.#changedFrom, from)
    this.#seen.apply(change)
    this.#pending.push(change)
  }
}
