import { OpCode, Reader, Writer } from '@zabra/protocol'
import { operationOf, type PathLookup } from '../core/operations/index.ts'
import type { ErrorTxn, MultiPartsBuilder, Packed, SubTxn } from '../core/types.ts'

/** Writes a part of a multi. */
export function encodePart(writer: Writer, part: SubTxn): void {
  // Servers before 3.8.2 do not know create2 in a multi and silently skip the whole transaction.
  writer.int(part.type === OpCode.create2 ? OpCode.create : part.type)
  const mark = writer.beginFrame()
  operationOf(part.type).encodeTxn(writer, part)
  writer.endFrame(mark)
}

/** Decodes a part of a multi with the reader `part`, which is bounded to the part: of a failed part only the code counts (disk-format 5.6). */
export function decodePart(reader: Reader, part: Reader, paths?: PathLookup): SubTxn {
  const type = reader.int()
  const start = reader.skipBuffer()
  if (start === -1) return reader.fail('Expected the record of a part, got null', 'data')
  if (type === OpCode.multi || type === OpCode.createSession || type === OpCode.closeSession) {
    return reader.fail(`Expected a type that a multi may hold, got ${type}`, 'type')
  }
  return operationOf(type).decodeTxn(type, part.reset(reader.bytes, start, reader.offset), paths) as SubTxn
}

/**
 * The parts of a large multi, kept as the bytes that the log has for them.
 *
 * Optimised: every iteration decodes the parts again, one after the other.
 * Why: the garbage collector copies tens of thousands of young objects that survive a turn, 5 to 10 ms at a time; objects that are
 * created and dropped in one turn cost it nothing.
 * Rules: the bytes do not change; the data of a part are a view of them. Tested against the same parts in an array
 * (`packed-parts.test.ts`).
 */
export class PackedParts implements Packed {
  /** The encoded parts, without their count. */
  readonly bytes: Uint8Array
  readonly length: number
  readonly failure: ErrorTxn | undefined
  readonly #known: PathLookup | undefined
  readonly #create2: readonly number[]

  /**
   * Paths that `known` finds are its strings. `create2` are the ascending indexes of create2 parts, which are encoded as create
   * (see `encodePart`).
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

/** Encodes parts one by one into `PackedParts`. */
export class PartsPacker implements MultiPartsBuilder {
  readonly #known: PathLookup | undefined
  readonly #writer: Writer
  readonly #create2: number[] = []
  #length = 0
  #failure: ErrorTxn | undefined

  /** Allocates `bytes` bytes, the expected length, because growing means copying. */
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
