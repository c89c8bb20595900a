/**
 * CRC-32 (as zlib's) and Adler-32 without a platform.
 * FENCED: CRC-32 takes eight bytes at a time from eight tables, Adler-32 defers its division, and takes numbers of four bytes,
 * two of which at a time are lanes of one sum.
 * Why: both run over every byte that a log or snapshot holds. Oracles: the plain forms in the tests.
 */
const tables: Int32Array[] = makeTables()

function makeTables(): Int32Array[] {
  const list = Array.from({ length: 8 }, () => new Int32Array(256))
  for (let n = 0; n < 256; n++) {
    let value = n
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1
    list[0]![n] = value
  }
  for (let n = 0; n < 256; n++) {
    for (let t = 1; t < 8; t++) {
      const before = list[t - 1]![n]!
      list[t]![n] = list[0]![before & 0xff]! ^ (before >>> 8)
    }
  }
  return list
}

const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
]

/** CRC-32 of the bytes between two offsets, going on from `previous`. An unsigned 32-bit number. */
export function crc32(bytes: Uint8Array, start = 0, end = bytes.length, previous = 0): number {
  let crc = ~previous
  let i = start
  for (; i + 8 <= end; i += 8) {
    crc ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24)
    crc =
      t7[crc & 0xff]! ^
      t6[(crc >>> 8) & 0xff]! ^
      t5[(crc >>> 16) & 0xff]! ^
      t4[crc >>> 24]! ^
      t3[bytes[i + 4]!]! ^
      t2[bytes[i + 5]!]! ^
      t1[bytes[i + 6]!]! ^
      t0[bytes[i + 7]!]!
  }
  for (; i < end; i++) crc = t0[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

/** The same over the bytes that `writeText` makes of a text, from one of its units on. */
export function crc32Text(text: string, start = 0, previous = 0): number {
  let crc = ~previous
  for (let i = start; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) crc = t0[(crc ^ unit) & 0xff]! ^ (crc >>> 8)
    else {
      if (unit < 0x800) crc = t0[(crc ^ (0xc0 | (unit >> 6))) & 0xff]! ^ (crc >>> 8)
      else {
        crc = t0[(crc ^ (0xe0 | (unit >> 12))) & 0xff]! ^ (crc >>> 8)
        crc = t0[(crc ^ (0x80 | ((unit >> 6) & 0x3f))) & 0xff]! ^ (crc >>> 8)
      }
      crc = t0[(crc ^ (0x80 | (unit & 0x3f))) & 0xff]! ^ (crc >>> 8)
    }
  }
  return ~crc >>> 0
}

/** So many words keep the sums of sums below 2^16 in each lane: 255 * 22 * 21 / 2. */
const LANE_WORDS = 22

/**
 * Adler-32 of the bytes between two offsets, going on from `previous` (1 at the start). An unsigned 32-bit number. `view` is
 * one of the same bytes, for who has it already.
 *
 * The first and third bytes of words are summed up in the lanes of one number, the others in those of another. `earlier`
 * sums are those of the sums before each word: what a byte adds to the high sum for every word behind its own.
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
