import type { Writer } from '@zabra/protocol'

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
