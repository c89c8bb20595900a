import {
  OPEN_ACL_BYTES,
  OPEN_ACL_UNSAFE,
  OpCode,
  ProtocolError,
  Reader,
  readACL,
  type Writer,
  writeACL,
  type ACL,
} from '@zabra/protocol'
import type { CreateTxn, Digest, LoggedTxn, SubTxn, Txn } from '../core/types.ts'

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

/** Finds nodes by their encoded path and returns the strings that the tree has for them. */
export interface PathLookup {
  /** Returns the node whose path is next in the reader and consumes the path; returns -1 and consumes nothing for an unknown path. */
  findFromReader(reader: Reader): number
  pathOf(node: number): string
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
  switch (txn.type) {
    case OpCode.create:
    case OpCode.create2:
      encodeCreate(w, txn)
      w.bool(txn.ephemeral)
      w.int(txn.parentCVersion)
      return
    case OpCode.createContainer:
      encodeCreate(w, txn)
      w.int(txn.parentCVersion)
      return
    case OpCode.createTTL:
      encodeCreate(w, txn)
      w.int(txn.parentCVersion)
      w.longNumber(txn.ttl)
      return
    case OpCode.delete:
    case OpCode.deleteContainer:
      return w.string(txn.path)
    case OpCode.setData:
    case OpCode.reconfig:
      w.string(txn.path)
      w.buffer(txn.data)
      return w.int(txn.version)
    case OpCode.setACL:
      w.string(txn.path)
      encodeAcl(w, txn.acl)
      return w.int(txn.version)
    case OpCode.check:
      w.string(txn.path)
      return w.int(txn.version)
    case OpCode.createSession:
      return w.int(txn.timeOut)
    case OpCode.closeSession:
      w.int(txn.paths2Delete.length)
      for (const path of txn.paths2Delete) w.string(path)
      return
    case OpCode.error:
      return w.int(txn.err)
    case OpCode.multi:
      w.int(txn.txns.length)
      for (const part of txn.txns) encodePart(w, part)
  }
}

export function encodePart(w: Writer, part: SubTxn): void {
  // Servers before 3.8.2 do not know create2 in a multi and silently skip the whole transaction.
  w.int(part.type === OpCode.create2 ? OpCode.create : part.type)
  const mark = w.beginFrame()
  encodeTxn(w, part)
  w.endFrame(mark)
}

function encodeCreate(w: Writer, txn: Pick<CreateTxn, 'path' | 'data' | 'acl'>): void {
  w.string(txn.path)
  w.buffer(txn.data)
  encodeAcl(w, txn.acl)
}

function encodeAcl(w: Writer, acl: readonly ACL[]): void {
  if (acl === OPEN_ACL_UNSAFE) return w.raw(OPEN_ACL_BYTES)
  w.int(acl.length)
  for (const entry of acl) writeACL(w, entry)
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
  if (type === OpCode.createSession) return { type, timeOut: r.int() }
  if (type === OpCode.check) r.fail('Expected a transaction that stands alone, got a check', 'type')
  return decodeSub(r, type, known)
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
  return decodeSub(part.reset(r.bytes, start, r.offset), type, known)
}

function decodeSub(r: Reader, type: number, known?: PathLookup): SubTxn {
  switch (type) {
    case OpCode.create:
    case OpCode.create2: {
      const base = decodeCreate(r)
      const ephemeral = r.bool()
      // Logs of servers before 3.4 lack the last field (disk-format 5.9).
      const parentCVersion = type === OpCode.create && r.remaining < 4 ? -1 : r.int()
      return { type, ...base, ephemeral, parentCVersion }
    }
    case OpCode.createContainer:
      return { type, ...decodeCreate(r), parentCVersion: r.int() }
    case OpCode.createTTL:
      return { type, ...decodeCreate(r), parentCVersion: r.int(), ttl: r.longNumber() }
    case OpCode.delete:
    case OpCode.deleteContainer:
      return { type, path: pathOf(r, known) }
    case OpCode.setData:
    case OpCode.reconfig:
      return { type, path: pathOf(r, known), data: r.buffer(), version: r.int() }
    case OpCode.setACL:
      return { type, path: pathOf(r), acl: decodeAcl(r), version: r.int() }
    case OpCode.check:
      return { type, path: pathOf(r), version: r.int() }
    case OpCode.error:
      return { type, err: r.int() }
    default:
      return r.fail(`Expected the type of a transaction, got ${type}`, 'type')
  }
}

function decodeCreate(r: Reader): { path: string; data: Uint8Array | null; acl: readonly ACL[] } {
  return { path: pathOf(r), data: r.buffer(), acl: decodeAcl(r) }
}

export function decodeAcl(r: Reader): readonly ACL[] {
  if (r.skipIfEqual(OPEN_ACL_BYTES)) return OPEN_ACL_UNSAFE
  const count = Math.max(0, r.vectorLength())
  const list: ACL[] = []
  for (let i = 0; i < count; i++) list.push(readACL(r))
  return list
}

function pathOf(r: Reader, known?: PathLookup): string {
  const node = known === undefined ? -1 : known.findFromReader(r)
  return node === -1 ? (r.string() ?? r.fail('Expected a path, got null', 'path')) : known!.pathOf(node)
}
