import { OpCode, ProtocolError, Reader, type Writer } from '@zabra/protocol'
import { operationOf, type PathLookup } from '../core/operations/index.ts'
import type { Digest, LoggedTxn, SubTxn, Txn } from '../core/types.ts'

/** Version of the digest that transactions carry (disk-format 6); digests of other versions are ignored. */
export const TXN_DIGEST_VERSION = 2

/** Writes a transaction as the log and a proposal carry it: header, record, digest (disk-format 5). */
export function encodeLoggedTxn(writer: Writer, logged: LoggedTxn): void {
  encodeHeader(writer, logged)
  encodeTxn(writer, logged.txn)
  encodeDigest(writer, logged)
}

export function encodeHeader(writer: Writer, { header, txn }: LoggedTxn): void {
  if (header.sessionId === 0n) writer.longNumber(0)
  else writer.long(header.sessionId)
  writer.int(header.cxid)
  writer.longNumber(header.zxid)
  writer.longNumber(header.time)
  writer.int(txn.type)
}

export function encodeDigest(writer: Writer, { digest }: LoggedTxn): void {
  if (digest === undefined) return
  writer.int(TXN_DIGEST_VERSION)
  writer.int(digest.hi | 0)
  writer.int(digest.lo | 0)
}

/**
 * Reads a transaction that `encodeLoggedTxn` or Apache ZooKeeper wrote, up to the reader's end. Data are views of the bytes; the tree
 * copies what it keeps. Paths that `known` finds are its strings, which saves creating them. Throws a `ProtocolError` when the
 * bytes are no transaction.
 */
export function decodeLoggedTxn(reader: Reader, known?: PathLookup): LoggedTxn {
  const header = decodeHeader(reader)
  const type = reader.int()
  return { header, txn: decodeTxn(reader, type, known), digest: decodeDigest(reader) }
}

export function decodeHeader(reader: Reader): LoggedTxn['header'] {
  const sessionId = reader.long()
  const cxid = reader.int()
  const zxid = reader.longNumber()
  const time = reader.longNumber()
  return { sessionId, cxid, zxid, time }
}

export function decodeDigest(reader: Reader): Digest | undefined {
  if (reader.remaining < 12) return undefined
  const version = reader.int()
  const hi = reader.int() >>> 0
  const lo = reader.int() >>> 0
  return version === TXN_DIGEST_VERSION ? { hi, lo } : undefined
}

function encodeTxn(w: Writer, txn: Txn): void {
  if (txn.type === OpCode.closeSession) {
    w.int(txn.paths2Delete.length)
    for (const path of txn.paths2Delete) w.string(path)
  } else if (txn.type === OpCode.multi) {
    w.int(txn.txns.length)
    for (const part of txn.txns) encodePart(w, part)
  } else operationOf(txn.type).encodeTxn(w, txn)
}

export function encodePart(w: Writer, part: SubTxn): void {
  // Servers before 3.8.2 do not know create2 in a multi and silently skip the whole transaction.
  w.int(part.type === OpCode.create2 ? OpCode.create : part.type)
  const mark = w.beginFrame()
  encodeTxn(w, part)
  w.endFrame(mark)
}

function decodeTxn(r: Reader, type: number, known?: PathLookup): Txn {
  if (type === OpCode.closeSession) {
    const paths = decodePaths(r, Infinity).next().value as string[]
    return { type, paths2Delete: paths }
  }
  if (type !== OpCode.multi) return decodeTop(r, type, known)
  const part = new Reader()
  const count = Math.max(0, r.vectorLength())
  const txns: SubTxn[] = []
  for (let i = 0; i < count; i++) txns.push(decodePart(r, part, known))
  return { type, txns }
}

export function decodeTop(r: Reader, type: number, known?: PathLookup): Txn {
  if (type === OpCode.check) r.fail('Expected a transaction that stands alone, got a check', 'type')
  return operationOf(type).decodeTxn(type, r, known)
}

/**
 * Decodes the paths of a closeSession, `inStep` paths in a step. A payload without the record (disk-format 5.8) has only 12 bytes of
 * digest left, which do not decode as a vector of paths.
 */
export function* decodePaths(r: Reader, inStep: number): Generator<void, string[]> {
  const start = r.offset
  if (r.remaining === 0) return []
  try {
    const count = Math.max(0, r.vectorLength())
    const paths: string[] = []
    for (let i = 0; i < count; i++) {
      if (i > 0 && i % inStep === 0) yield
      paths.push(r.string() ?? '')
    }
    if (r.remaining !== 0 && r.remaining < 12) r.fail('Expected a digest', 'digest')
    return paths
  } catch (error) {
    if (!(error instanceof ProtocolError) || r.end - start !== 12) throw error
    r.offset = start
    return []
  }
}

/** Decodes a part of a multi with the reader `part`, which is bounded to the part: of a failed part only the code counts (disk-format 5.6). */
export function decodePart(r: Reader, part: Reader, known?: PathLookup): SubTxn {
  const type = r.int()
  const start = r.skipBuffer()
  if (start === -1) return r.fail('Expected the record of a part, got null', 'data')
  if (type === OpCode.multi || type === OpCode.createSession || type === OpCode.closeSession) {
    return r.fail(`Expected a type that a multi may hold, got ${type}`, 'type')
  }
  return operationOf(type).decodeTxn(type, part.reset(r.bytes, start, r.offset), known) as SubTxn
}
