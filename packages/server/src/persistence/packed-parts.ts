import { OpCode, Reader, Writer } from '@zabra/protocol'
import type { PathLookup } from '../core/operations/index.ts'
import type { ErrorTxn, Packed, MultiPartsBuilder, SubTxn } from '../core/types.ts'
import { decodePart, encodePart } from './txn-codec.ts'

/**
 * The parts of a large multi, as the bytes that a log has of them.
 *
 * FENCED: every walk over the parts makes them anew, one after the other.
 * Why: tens of thousands of parts that live from turn to turn are what a collection of young objects has to copy, 5 to 10 ms at a
 * time; those that are made and left in one turn cost it nothing.
 * Rules: the bytes stay as they are; a part's data is a view of them. Oracle: the same parts in an array
 * (`packed-parts.test.ts`).
 */
export class PackedParts implements Packed {
  /** All parts, one behind the other, without their count. */
  readonly bytes: Uint8Array
  readonly length: number
  readonly failure: ErrorTxn | undefined
  readonly #known: PathLookup | undefined
  readonly #create2: readonly number[]

  /**
   * Paths are those that `known` has for them. `create2` are the places, in order, of creations that are answered with a stat,
   * which bytes do not tell (see `encodePart`).
   */
  constructor(
    bytes: Uint8Array,
    length: number,
    failure: ErrorTxn | undefined,
    known?: PathLookup,
    create2: readonly number[] = [],
  ) {
    this.bytes = bytes
    this.length = length
    this.failure = failure
    this.#known = known
    this.#create2 = create2
  }

  *[Symbol.iterator](): Generator<SubTxn> {
    const all = new Reader(this.bytes)
    const one = new Reader()
    let next = 0
    for (let place = 0; place < this.length; place++) {
      const part = decodePart(all, one, this.#known)
      if (part.type === OpCode.create && place === this.#create2[next]) {
        next++
        yield { ...part, type: OpCode.create2 }
      } else yield part
    }
  }
}

/** Packs parts one by one. */
export class PartsPacker implements MultiPartsBuilder {
  readonly #known: PathLookup | undefined
  readonly #writer: Writer
  readonly #create2: number[] = []
  #length = 0
  #failure: ErrorTxn | undefined

  /** There are about so many bytes; they are got at once, since growing is copying. */
  constructor(bytes: number, known?: PathLookup) {
    this.#writer = new Writer(bytes)
    this.#known = known
  }

  get length(): number {
    return this.#length
  }

  add(part: SubTxn): void {
    if (part.type === OpCode.error) this.#failure ??= part
    if (part.type === OpCode.create2) this.#create2.push(this.#length)
    encodePart(this.#writer, part)
    this.#length++
  }

  done(): PackedParts {
    return new PackedParts(this.#writer.take(), this.#length, this.#failure, this.#known, this.#create2)
  }
}
