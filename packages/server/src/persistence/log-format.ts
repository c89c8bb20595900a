import { adler32, Writer } from '@zabra/protocol'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { encodeInSteps } from './txn-codec.ts'

/** "ZKLG". Version 2 and database id 0 follow in the header (disk-format 4.1). */
export const LOG_MAGIC = 0x5a4b4c47
export const LOG_HEADER_BYTES = 16
/** A checksum as a long and a length as an int precede the payload of an entry (disk-format 4.2). */
export const ENTRY_HEAD_BYTES = 12
/** The end mark of every entry. */
export const ENTRY_END = 0x42
/** Entries are never longer; a larger length is corruption. */
export const MAX_ENTRY_BYTES = 0x4000_0000
/** A payload begins with a TxnHeader (disk-format 5.1). */
export const TXN_HEADER_BYTES = 32

/** Writes the header of a log file. */
export function writeLogHeader(writer: Writer): void {
  writer.int(LOG_MAGIC)
  writer.int(2)
  writer.longNumber(0)
}

/**
 * Returns the size that a file of `size` bytes must have before the bytes from `position` to `end` are written: unchanged, or
 * extended ahead by `step` (disk-format 4.4).
 */
export function paddedSize(position: number, end: number, size: number, step: number): number {
  let grown = size
  if (step > 0 && position + 4096 >= size) {
    grown = position > size ? Math.floor((position + step) / step) * step : size + step
  }
  return Math.max(grown, end)
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
  let adler = 1
  for (let at = 0; at < payload.length; at += CHECKSUM_STEP_BYTES) {
    if (at > 0) yield
    adler = adler32(payload, at, Math.min(at + CHECKSUM_STEP_BYTES, payload.length), adler)
  }
  return { payload, adler }
}

/** Writes one entry from an encoded payload. `adler` is the payload's Adler-32, if it is known. */
export function writeEncodedEntry(writer: Writer, payload: Uint8Array, adler?: number): void {
  const at = writer.length
  writer.longNumber(0)
  writer.buffer(payload)
  writer.longNumberAt(at, adler ?? writer.adler32(at + ENTRY_HEAD_BYTES))
  writer.byte(ENTRY_END)
}
