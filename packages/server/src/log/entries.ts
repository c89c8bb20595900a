import type { Writer } from '@zabra/protocol'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { ENTRY_END, ENTRY_HEAD_BYTES } from './log-format.ts'
import { encodeLoggedTxn } from './txn-codec.ts'

/** The zxid that a payload carries; undefined when it is too short for a header. */
export function payloadZxid(payload: Uint8Array): Zxid | undefined {
  return payload.length < 32 ? undefined : intAt(payload, 12) * 0x1_0000_0000 + (intAt(payload, 16) >>> 0)
}

const intAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!

/** Writes an entry whose payload is encoded already. */
export function encodePayload(writer: Writer, payload: Uint8Array): void {
  const at = writer.length
  writer.longNumber(0)
  writer.buffer(payload)
  writer.longNumberAt(at, writer.adler32(at + ENTRY_HEAD_BYTES))
  writer.byte(ENTRY_END)
}

/** Writes one entry: checksum, length, payload, end mark. */
export function encodeEntry(writer: Writer, logged: LoggedTxn): void {
  const at = writer.length
  writer.longNumber(0)
  const mark = writer.beginFrame()
  encodeLoggedTxn(writer, logged)
  writer.endFrame(mark)
  writer.longNumberAt(at, writer.adler32(mark + 4))
  writer.byte(ENTRY_END)
}
