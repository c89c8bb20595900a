/**
 * How many of the first `length` bytes are left when the zeros at their end are taken away.
 *
 * FENCED: from the end, 64 bytes at a time as numbers of four bytes.
 * Why: a log file is made 64 MiB long before it is filled, and every start looks through what is empty. Oracle: the plain
 * loop in `zeros.test.ts`.
 */
export function lengthWithoutTrailingZeros(bytes: Uint8Array, length: number): number {
  let end = length
  // To the end of a number of four bytes, then by blocks, then inside the last block.
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
