import type { Prng } from './prng.ts'

const SECTOR = 512

type Change =
  | { readonly kind: 'write'; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: 'truncate'; readonly length: number }

/** Bytes that grow in place. */
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

/** What a power cut did to a file: nothing, took everything away, cut it, or kept sectors of it in no order, with wrong bytes in them. */
export type PowerLoss = 'clean' | 'lost' | 'torn' | 'reordered' | 'rotten'

/** A file: what programs see, what has reached the platter, and the changes in between. */
export class FileImage {
  readonly #seen = new GrowableBytes()
  readonly #durable = new GrowableBytes()
  #pending: Change[] = []
  /** Counts what made the durable bytes shorter: whoever read them must begin anew. */
  truncations = 0
  /** Where the first byte lay that power cuts since the last whole sync could change. */
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
    this.#change({ kind: 'write', position, bytes: bytes.slice() })
  }

  truncate(length: number): void {
    this.#change({ kind: 'truncate', length })
  }

  /** Makes the first `count` changes durable: those that were there when the sync began. */
  sync(count: number): void {
    for (const change of this.#pending.splice(0, count)) {
      if (change.kind === 'truncate') this.truncations++
      this.#durable.apply(change)
    }
    if (this.#pending.length === 0) this.firstUnsyncedByte = Infinity
  }

  /** After a sync that failed the system forgets what it had to write: it will never be durable. */
  dropPending(): void {
    this.#pending = []
  }

  /**
   * The file after its machine lost power: of the changes that were not synced a beginning is there, cut at any byte. On a
   * `wild` disk each sector is there or not, whatever becomes of those before it, and bytes of it may hold anything. Bytes that
   * were on the platter already, and that nobody wanted to be others, are as they were.
   */
  losePower(prng: Prng, wild: boolean): PowerLoss {
    this.firstUnsyncedByte = Math.min(this.firstUnsyncedByte, this.#firstDifference())
    if (this.#pending.length === 0) {
      this.#seen.copyFrom(this.#durable)
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
    this.#seen.copyFrom(this.#durable)
    if (mood === 'sectors' || mood === 'rotten') return mood === 'sectors' ? 'reordered' : 'rotten'
    return mood === 'nothing' ? 'lost' : 'torn'
  }

  #keepSectors(position: number, bytes: Uint8Array, prng: Prng, rotten: boolean): void {
    for (let at = 0; at < bytes.length;) {
      const length = Math.min(bytes.length - at, SECTOR - ((position + at) % SECTOR))
      if (prng.chance(0.6)) {
        const sector = bytes.slice(at, at + length)
        // A sector that was being written when the power went may hold anything.
        if (rotten && prng.chance(0.3)) this.#corrupt(sector, position + at, prng)
        this.#durable.apply({ kind: 'write', position: position + at, bytes: sector })
      }
      at += length
    }
  }

  /** Flips a bit of what is new in a part of a sector, if anything is. */
  #corrupt(sector: Uint8Array, position: number, prng: Prng): void {
    const [at, bit] = [prng.below(sector.length), 1 << prng.below(8)]
    const durable = this.#durable.view()
    if (position + at >= durable.length || durable[position + at] !== sector[at]) sector[at]! ^= bit
  }

  /** Where the first byte lies that differs from the platter, or would. */
  #firstDifference(): number {
    const [seen, durable] = [this.#seen.view(), this.#durable.view()]
    const common = Math.min(seen.length, durable.length)
    for (let at = 0; at < common; at++) if (seen[at] !== durable[at]) return at
    return common
  }

  #change(change: Change): void {
    this.#seen.apply(change)
    this.#pending.push(change)
  }
}
