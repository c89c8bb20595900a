import type { Writer } from '@zabra/protocol'

/** "ZKLG", version 2, database 0. */
export const LOG_MAGIC = 0x5a4b4c47
export const LOG_HEADER_BYTES = 16
/** A checksum as a long and a length as an int before the payload. */
export const ENTRY_HEAD_BYTES = 12
/** Ends every entry. */
export const ENTRY_END = 0x42
/** No entry is longer: what is claims to be is damage. */
export const MAX_ENTRY_BYTES = 0x4000_0000

export function writeLogHeader(writer: Writer): void {
  writer.int(LOG_MAGIC)
  writer.int(2)
  writer.longNumber(0)
}

/** How long a file must be before bytes up to `end` go in at `position` (`FilePadding`): unchanged, or grown ahead. */
export function paddedSize(position: number, end: number, size: number, step: number): number {
  let grown = size
  if (step > 0 && position + 4096 >= size) {
    grown = position > size ? Math.floor((position + step) / step) * step : size + step
  }
  return Math.max(grown, end)
}
