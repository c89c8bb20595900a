/**
 * Adler-32 without a platform.
 * Optimised: defers its division and processes words of four bytes, two bytes in the lanes of each sum.
 * Why: it runs over every byte of a log or snapshot. Oracle: a loop over bytes, in `tables.test.ts`.
 */

/** Words per block, so that the sums of sums stay below 2^16 in each lane: 255 * 22 * 21 / 2. */
const LANE_WORDS = 22

/**
 * Returns the Adler-32 of the bytes between two offsets, continuing `previous` (1 at the start), as an unsigned 32-bit number. `view`
 * is a view of the same bytes, for callers that have one.
 *
 * The first and third bytes of words are summed in the lanes of one number, the others in those of another. The `earlier` sums add
 * up the sums before each word: what a byte adds to the high sum for every word after its own.
 */
export function adler32(
  bytes: Uint8Array,
  start = 0,
  end = bytes.length,
  previous = 1,
  view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
): number {
  let low = previous & 0xffff
  let high = previous >>> 16
  let at = start
  for (let words = (end - start) >> 2; words > 0; words -= LANE_WORDS) {
    const count = Math.min(LANE_WORDS, words)
    let even = 0
    let odd = 0
    let earlierEven = 0
    let earlierOdd = 0
    for (const stop = at + 4 * count; at < stop; at += 4) {
      const word = view.getInt32(at, true)
      earlierEven = (earlierEven + even) | 0
      earlierOdd = (earlierOdd + odd) | 0
      even = (even + (word & 0xff00ff)) | 0
      odd = (odd + ((word >>> 8) & 0xff00ff)) | 0
    }
    const earlier =
      (earlierEven & 0xffff) + (earlierEven >>> 16) + (earlierOdd & 0xffff) + (earlierOdd >>> 16)
    const [first, second, third, fourth] = [even & 0xffff, odd & 0xffff, even >>> 16, odd >>> 16]
    high = (high + 4 * (low * count + earlier + first) + 3 * second + 2 * third + fourth) % 65521
    low = (low + first + second + third + fourth) % 65521
  }
  for (; at < end; at++) {
    low = (low + bytes[at]!) % 65521
    high = (high + low) % 65521
  }
  return ((high << 16) | low) >>> 0
}
