import { adler32, Writer } from '@zabra/protocol'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { ENTRY_END, ENTRY_HEAD_BYTES, TXN_HEADER_BYTES } from './log-format.ts'
import { encodeInSteps } from './txn-codec.ts'

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
