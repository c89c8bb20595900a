import { adler32, OpCode, ProtocolError, Reader, Writer } from '@zabra/protocol'
import { operationOf, type PathLookup } from '../core/operations/index.ts'
import type { PieceWriter } from '../core/piece-writer.ts'
import { runToEnd, STEP, StepCounter } from '../core/steps.ts'
import type {
  CloseSessionTxn,
  Digest,
  ErrorTxn,
  LoggedTxn,
  MultiTxn,
  SubTxn,
  Txn,
  Zxid,
} from '../core/types.ts'
import { ENTRY_END, ENTRY_HEAD_BYTES, TXN_HEADER_BYTES } from './log-format.ts'
import { decodePart, encodePart, PackedParts } from './packed-parts.ts'

/** Version of the digest that transactions carry (disk-format 6); digests of other versions are ignored. */
export const TXN_DIGEST_VERSION = 2

const DIGEST_BYTES = 12
/** Bytes of a piece of a long transaction, which are copied in one step. */
const PIECE_BYTES = 1 << 17

type CompoundTxn = MultiTxn | CloseSessionTxn
type CompoundType = CompoundTxn['type']

/** Whether a transaction holds a list of any length, and is encoded and decoded in steps. */
const isCompound = (txn: Txn): txn is CompoundTxn => isCompoundType(txn.type)
const isCompoundType = (type: number): type is CompoundType =>
  type === OpCode.multi || type === OpCode.closeSession

/** Writes a transaction as the log and a proposal carry it: header, record, digest (disk-format 5). */
export function encodeLoggedTxn(writer: Writer, logged: LoggedTxn): void {
  const { txn } = logged
  encodeHeader(writer, logged)
  if (isCompound(txn)) runToEnd(encodeCompound(writer, txn))
  else operationOf(txn.type).encodeTxn(writer, txn)
  encodeDigest(writer, logged)
}

/** As `encodeLoggedTxn`, in steps. */
export function* encodeInSteps(writer: Writer, logged: LoggedTxn): Generator<void> {
  const { txn } = logged
  if (!isCompound(txn)) return encodeLoggedTxn(writer, logged)
  encodeHeader(writer, logged)
  yield* encodeCompound(writer, txn)
  encodeDigest(writer, logged)
}

function encodeHeader(writer: Writer, { header, txn }: LoggedTxn): void {
  if (header.sessionId === 0n) writer.longNumber(0)
  else writer.long(header.sessionId)
  writer.int(header.cxid)
  writer.longNumber(header.zxid)
  writer.longNumber(header.time)
  writer.int(txn.type)
}

function* encodeCompound(writer: Writer, txn: CompoundTxn): Generator<void> {
  const items = txn.type === OpCode.multi ? txn.txns : txn.paths2Delete
  writer.int(items.length)
  if (items instanceof PackedParts) return writer.raw(items.bytes)
  if (txn.type === OpCode.closeSession) return yield* encodePaths(writer, txn.paths2Delete)
  const step = new StepCounter()
  for (const part of txn.txns) {
    if (step.begins('path' in part ? part.path : '')) yield
    encodePart(writer, part)
  }
}

/** Puts paths together in pieces: how many bytes they take is known at the end, and each growth of one array copies it. */
function* encodePaths(writer: Writer, paths: readonly string[]): Generator<void> {
  const pieces: Uint8Array[] = []
  let piece = writer
  const step = new StepCounter()
  for (const path of paths) {
    if (step.begins(path)) {
      yield
      if (piece === writer) piece = new Writer(PIECE_BYTES)
      else if (piece.length >= PIECE_BYTES) pieces.push(piece.take())
    }
    piece.string(path)
  }
  if (piece === writer) return
  pieces.push(piece.take())
  writer.reserve(pieces.reduce((sum, { length }) => sum + length, DIGEST_BYTES))
  for (const bytes of pieces) {
    yield
    writer.raw(bytes)
  }
}

function encodeDigest(writer: Writer, { digest }: LoggedTxn): void {
  if (digest === undefined) return
  writer.int(TXN_DIGEST_VERSION)
  writer.int(digest.hi | 0)
  writer.int(digest.lo | 0)
}

/** Returns the zxid in the header of a payload, or undefined when it is too short for a header. */
export function zxidOfPayload(payload: Uint8Array): Zxid | undefined {
  if (payload.length < TXN_HEADER_BYTES) return undefined
  return intAt(payload, 12) * 0x1_0000_0000 + (intAt(payload, 16) >>> 0)
}

const intAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!

/** Bytes of a checksum in one step. Four times as many take up to 7 ms before the loop is compiled. */
const CHECKSUM_STEP_BYTES = 1 << 16

/** Encodes a transaction, then computes its Adler-32, both in steps. */
export function* encodePayloadInSteps(
  logged: LoggedTxn,
): Generator<void, { payload: Uint8Array; adler: number }> {
  const writer = new Writer(1 << 12)
  yield* encodeInSteps(writer, logged)
  const payload = writer.take()
  return { payload, adler: yield* checksumInSteps(payload) }
}

/** Computes an Adler-32 in steps. */
export function* checksumInSteps(payload: Uint8Array): Generator<void, number> {
  let adler = 1
  for (let at = 0; at < payload.length; at += CHECKSUM_STEP_BYTES) {
    if (at > 0) yield
    adler = adler32(payload, at, Math.min(at + CHECKSUM_STEP_BYTES, payload.length), adler)
  }
  return adler
}

/** Writes one entry from an encoded payload. `adler` is the payload's Adler-32, if it is known. */
export function writeEncodedEntry(writer: Writer, payload: Uint8Array, adler?: number): void {
  const at = writer.length
  writer.longNumber(0)
  writer.buffer(payload)
  writer.longNumberAt(at, adler ?? writer.checksum(adler32, at + ENTRY_HEAD_BYTES))
  writer.byte(ENTRY_END)
}

/** Does as `writeEncodedEntry` without a copy of the payload. */
export function attachEncodedEntry(writer: PieceWriter, payload: Uint8Array, adler: number): void {
  writer.longNumber(adler)
  writer.int(payload.length)
  writer.attach(payload)
  writer.byte(ENTRY_END)
}

/** Writes one entry: checksum, length, payload, end mark. */
export function writeEntry(writer: Writer, logged: LoggedTxn): void {
  const at = writer.length
  writer.longNumber(0)
  const mark = writer.beginFrame()
  encodeLoggedTxn(writer, logged)
  writer.endFrame(mark)
  writer.longNumberAt(at, writer.checksum(adler32, mark + 4))
  writer.byte(ENTRY_END)
}

/**
 * Reads a transaction that `encodeLoggedTxn` or Apache ZooKeeper wrote, up to the reader's end. Data and the parts of a large multi
 * are views of the bytes; the tree copies what it keeps. Paths that `paths` finds are its strings, which saves creating them.
 * Throws a `ProtocolError` when the bytes are no transaction.
 */
export function decodeLoggedTxn(reader: Reader, paths?: PathLookup): LoggedTxn {
  const header = decodeHeader(reader)
  const type = reader.int()
  const txn = isCompoundType(type)
    ? runToEnd(decodeCompound(type, reader, paths, Infinity))
    : decodeRecord(type, reader, paths)
  return { header, txn, digest: decodeDigest(reader) }
}

/** As `decodeLoggedTxn`, in steps of `step` parts. The bytes must not change. */
export function* decodeInSteps(reader: Reader, paths?: PathLookup, step = STEP): Generator<void, LoggedTxn> {
  const header = decodeHeader(reader)
  const type = reader.int()
  const txn = isCompoundType(type)
    ? yield* decodeCompound(type, reader, paths, step)
    : decodeRecord(type, reader, paths)
  return { header, txn, digest: decodeDigest(reader) }
}

const LARGE_BYTES = 8192
/** Smaller ones that are decoded at once. */
const DECODED_AT_ONCE = 16

/** What takes decoded transactions; undefined for a large one, which is decoded again when it is applied, in steps too. */
interface DecodedTxns {
  push(logged: LoggedTxn | undefined): void
}

/**
 * Decodes transactions, and adds them to `decoded` in their order. Returns the steps where they are many or large. Throws a `ProtocolError`,
 * now or in a step, where one cannot be decoded. `reader` is used for all: a new one costs more than to decode a small transaction.
 */
export function decodeTransactions(
  payloads: readonly Uint8Array[],
  paths: PathLookup,
  reader: Reader,
  decoded: DecodedTxns,
): Generator<void> | undefined {
  if (payloads.length > DECODED_AT_ONCE || payloads.some(isLargePayload))
    return decodeAllInSteps(payloads, paths, reader, decoded)
  for (const payload of payloads) decoded.push(decodeLoggedTxn(reader.resetToView(payload), paths))
  return undefined
}

function* decodeAllInSteps(
  payloads: readonly Uint8Array[],
  paths: PathLookup,
  reader: Reader,
  decoded: DecodedTxns,
): Generator<void> {
  for (let i = 0; i < payloads.length; i++) {
    const payload = payloads[i]!
    if (isLargePayload(payload)) {
      yield* decodeInSteps(new Reader(payload), paths)
      decoded.push(undefined)
    } else decoded.push(decodeLoggedTxn(reader.resetToView(payload), paths))
    if (isLargePayload(payload) || i % DECODED_AT_ONCE === DECODED_AT_ONCE - 1) yield
  }
}

/** Returns whether a transaction is so large that it is decoded in steps. */
export const isLargePayload = (payload: Uint8Array): boolean => payload.length >= LARGE_BYTES

function decodeHeader(reader: Reader): LoggedTxn['header'] {
  const sessionId = reader.long()
  const cxid = reader.int()
  const zxid = reader.longNumber()
  const time = reader.longNumber()
  return { sessionId, cxid, zxid, time }
}

function decodeRecord(type: number, reader: Reader, paths: PathLookup | undefined): Txn {
  if (type === OpCode.check)
    reader.fail('Expected a transaction that can be logged alone, got a check', 'type')
  return operationOf(type).decodeTxn(type, reader, paths)
}

const decodeCompound = (
  type: CompoundType,
  reader: Reader,
  paths: PathLookup | undefined,
  step: number,
): Generator<void, Txn> =>
  type === OpCode.multi ? decodeMulti(reader, paths, step) : decodeCloseSession(reader, step)

/** Decodes every part once, so that a malformed one is rejected now. The parts of a large multi stay in the bytes. */
function* decodeMulti(reader: Reader, paths: PathLookup | undefined, step: number): Generator<void, Txn> {
  const count = Math.max(0, reader.vectorLength())
  const isLarge = count > step
  const start = reader.offset
  const partReader = new Reader()
  const parts: SubTxn[] = []
  let failure: ErrorTxn | undefined
  for (let i = 0; i < count; i++) {
    if (i > 0 && i % step === 0) yield
    const part = decodePart(reader, partReader, paths)
    if (!isLarge) parts.push(part)
    else if (part.type === OpCode.error) failure ??= part
  }
  if (!isLarge) return { type: OpCode.multi, txns: parts }
  const bytes = reader.bytes.subarray(start, reader.offset)
  return { type: OpCode.multi, txns: new PackedParts(bytes, count, failure, paths) }
}

/**
 * Decodes the paths of a closeSession. A payload without the record (disk-format 5.8) has only 12 bytes of digest left, which do
 * not decode as a vector of paths.
 */
function* decodeCloseSession(reader: Reader, step: number): Generator<void, Txn> {
  const type = OpCode.closeSession
  const start = reader.offset
  if (reader.remaining === 0) return { type, paths2Delete: [] }
  try {
    const count = Math.max(0, reader.vectorLength())
    const paths2Delete: string[] = []
    const counter = new StepCounter(step)
    for (let i = 0; i < count; i++) {
      const path = reader.string() ?? ''
      if (counter.begins(path)) yield
      paths2Delete.push(path)
    }
    if (reader.remaining !== 0 && reader.remaining < 12) reader.fail('Expected a digest', 'digest')
    return { type, paths2Delete }
  } catch (error) {
    if (!(error instanceof ProtocolError) || reader.end - start !== 12) throw error
    reader.offset = start
    return { type, paths2Delete: [] }
  }
}

function decodeDigest(reader: Reader): Digest | undefined {
  if (reader.remaining < 12) return undefined
  const version = reader.int()
  const hi = reader.int() >>> 0
  const lo = reader.int() >>> 0
  return version === TXN_DIGEST_VERSION ? { hi, lo } : undefined
}
