import { OpCode, Reader, type Writer } from '@zabra/protocol'
import type { PathLookup } from '../core/operations/index.ts'
import type { ErrorTxn, LoggedTxn, Txn } from '../core/types.ts'
import { PackedParts } from './packed-parts.ts'
import {
  decodeDigest,
  decodeHeader,
  decodePart,
  decodePaths,
  decodeTop,
  encodeDigest,
  encodeHeader,
  encodeLoggedTxn,
  encodePart,
} from './txn-codec.ts'

/** Encodes as `encodeLoggedTxn` does, `parts` parts in a step. */
export function* encodeInSteps(writer: Writer, logged: LoggedTxn, parts: number): Generator<void> {
  const { txn } = logged
  if (txn.type !== OpCode.multi && txn.type !== OpCode.closeSession) return encodeLoggedTxn(writer, logged)
  encodeHeader(writer, logged)
  const list = txn.type === OpCode.multi ? txn.txns : txn.paths2Delete
  writer.int(list.length)
  if (list instanceof PackedParts) writer.raw(list.bytes)
  else {
    let left = parts
    for (const part of list) {
      if (left-- === 0) {
        left = parts - 1
        yield
      }
      if (typeof part === 'string') writer.string(part)
      else encodePart(writer, part)
    }
  }
  encodeDigest(writer, logged)
}

/** Decodes as `decodeLoggedTxn` does, `parts` parts in a step. The bytes must not change: the parts of a multi stay in them. */
export function* decodeInSteps(
  reader: Reader,
  parts: number,
  known?: PathLookup,
): Generator<void, LoggedTxn> {
  const header = decodeHeader(reader)
  const type = reader.int()
  let txn: Txn
  if (type === OpCode.multi) txn = yield* decodeMulti(reader, parts, known)
  else if (type === OpCode.closeSession) txn = { type, paths2Delete: yield* decodePaths(reader, parts) }
  else txn = decodeTop(reader, type, known)
  return { header, txn, digest: decodeDigest(reader) }
}

/** Decodes every part once, so that a malformed one is rejected now. */
function* decodeMulti(r: Reader, inStep: number, known?: PathLookup): Generator<void, Txn> {
  const count = Math.max(0, r.vectorLength())
  const start = r.offset
  const one = new Reader()
  let failure: ErrorTxn | undefined
  for (let i = 0; i < count; i++) {
    if (i > 0 && i % inStep === 0) yield
    const part = decodePart(r, one, known)
    if (part.type === OpCode.error) failure ??= part
  }
  return {
    type: OpCode.multi,
    txns: new PackedParts(r.bytes.subarray(start, r.offset), count, failure, known),
  }
}
