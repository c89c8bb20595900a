import { adler32 } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import { ENTRY_END, ENTRY_HEAD_BYTES, MAX_ENTRY_BYTES, TXN_HEADER_BYTES } from './log-format.ts'

const SECTOR = 512
/** Bytes that the search for a whole entry sums up at most, since the tail may hold data of a client. */
const SEARCH_BYTES = 64 << 20

/**
 * Returns where in `rest` a whole entry with a zxid above `last` begins, or -1. The search starts after what an entry at the
 * start of `rest` claims as its length: bytes inside it were sent by a client and may look like anything.
 */
export function findWholeEntry(rest: Uint8Array, last: Zxid): number {
  const view = new DataView(rest.buffer, rest.byteOffset, rest.byteLength)
  const claimed = rest.length < ENTRY_HEAD_BYTES ? 0 : view.getInt32(8)
  let left = SEARCH_BYTES
  const from = claimed >= TXN_HEADER_BYTES && claimed <= MAX_ENTRY_BYTES ? ENTRY_HEAD_BYTES + claimed + 1 : 1
  for (let at = from; at + ENTRY_HEAD_BYTES < rest.length; at++) {
    if (view.getUint32(at) !== 0) continue
    const length = view.getInt32(at + 8)
    const end = at + ENTRY_HEAD_BYTES + length
    if (length < TXN_HEADER_BYTES || rest[end] !== ENTRY_END) continue
    left -= length
    // Too many bytes look like entries to tell a torn write from corruption: report an entry, which an operator must judge.
    if (left < 0) return at
    if (adler32(rest, at + ENTRY_HEAD_BYTES, end, 1, view) !== view.getUint32(at + 4)) continue
    const zxid = view.getInt32(at + 24) * 0x1_0000_0000 + view.getUint32(at + 28)
    if (zxid > last) return at
  }
  return -1
}

/**
 * Returns why the bytes where an entry should begin cannot come from a write that a crash cut short, or undefined when they
 * can: such a write leaves a partial entry, or whole sectors of zeros (disk-format 4.5). `rest` lies at offset `at` of the file
 * and lacks the zeros at its end.
 */
export function corruptionIn(rest: Uint8Array, at: number): string | undefined {
  if (rest.length <= ENTRY_HEAD_BYTES) return undefined
  const view = new DataView(rest.buffer, rest.byteOffset, rest.byteLength)
  const length = view.getInt32(8)
  const actual = lengthByChecksum(rest, view.getUint32(4))
  if (actual >= 0 && actual !== length)
    return `Expected an entry of ${actual} bytes by its checksum, got a length of ${length}`
  if (length < 0 || length > MAX_ENTRY_BYTES) return `Expected the length of an entry, got ${length}`
  const end = ENTRY_HEAD_BYTES + length
  if (rest.length <= end) return undefined
  if (length > 0 && rest[end] === ENTRY_END) return 'Expected an entry that matches its checksum'
  return hasZeroSector(rest, at, end) ? undefined : 'Expected an entry'
}

/** Returns the length at which the payload matches its checksum and an end mark follows, or -1. */
function lengthByChecksum(rest: Uint8Array, checksum: number): number {
  let low = 1
  let high = 0
  for (let i = ENTRY_HEAD_BYTES; i < rest.length; i++) {
    if (
      rest[i] === ENTRY_END &&
      ((high << 16) | low) >>> 0 === checksum &&
      i >= ENTRY_HEAD_BYTES + TXN_HEADER_BYTES
    )
      return i - ENTRY_HEAD_BYTES
    low = (low + rest[i]!) % 65521
    high = (high + low) % 65521
  }
  return -1
}

/** Returns whether a sector that overlaps the first `length` bytes of `rest`, which lies at `at` in its file, is all zeros. */
function hasZeroSector(rest: Uint8Array, at: number, length: number): boolean {
  for (let from = 0; from < length;) {
    const to = Math.min(from + SECTOR - ((at + from) % SECTOR), rest.length)
    if (lengthWithoutTrailingZeros(rest.subarray(from, to), to - from) === 0) return true
    from = to
  }
  return false
}

/**
 * Returns how many of the first `length` bytes remain without the zeros at their end.
 *
 * Optimised: compares 64 bytes at a time as words of four bytes.
 * Why: a log file is extended by 64 MiB ahead of its contents, and every start scans the empty part.
 * Tested against the plain loop in `log-tail.test.ts`.
 */
export function lengthWithoutTrailingZeros(bytes: Uint8Array, length: number): number {
  let end = length
  // Up to a word boundary, then whole blocks, then inside the last block.
  while (end > 0 && ((bytes.byteOffset + end) & 3) !== 0) {
    if (bytes[end - 1] !== 0) return end
    end--
  }
  if (end >= 64) {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset + (end & 3), end >> 2)
    let at = words.length
    while (at >= 16 && isZero(words, at - 16)) at -= 16
    end -= (words.length - at) << 2
  }
  while (end > 0 && bytes[end - 1] === 0) end--
  return end
}

const isZero = (words: Int32Array, at: number): boolean =>
  (words[at]! |
    words[at + 1]! |
    words[at + 2]! |
    words[at + 3]! |
    words[at + 4]! |
    words[at + 5]! |
    words[at + 6]! |
    words[at + 7]! |
    words[at + 8]! |
    words[at + 9]! |
    words[at + 10]! |
    words[at + 11]! |
    words[at + 12]! |
    words[at + 13]! |
    words[at + 14]! |
    words[at + 15]!) ===
  0
