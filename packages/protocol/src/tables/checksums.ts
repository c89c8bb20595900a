/**
 * CRC-32 (as zlib's) and Adler-32 without a platform.
 * Optimised: CRC-32 processes sixteen bytes at a time with sixteen tables. Adler-32 defers its division and processes words of four
 * bytes, two bytes in the lanes of each sum.
 * Why: both run over every byte of a log or snapshot. Oracles: zlib and a loop over bytes, in `tables.test.ts`.
 */
export const { crc32, crc32Text } = withTables()

/** A function, since bundlers turn constants of a module into variables, which cost a lookup each time. */
function withTables() {
  const t0 = Int32Array.from({ length: 256 }, (_, n) => {
    let value = n
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1
    return value
  })
  /** Returns the table of a byte that is one position earlier. */
  const earlierTable = (table: Int32Array): Int32Array =>
    table.map((value) => t0[value & 0xff]! ^ (value >>> 8))
  const t1 = earlierTable(t0)
  const t2 = earlierTable(t1)
  const t3 = earlierTable(t2)
  const t4 = earlierTable(t3)
  const t5 = earlierTable(t4)
  const t6 = earlierTable(t5)
  const t7 = earlierTable(t6)
  const t8 = earlierTable(t7)
  const t9 = earlierTable(t8)
  const t10 = earlierTable(t9)
  const t11 = earlierTable(t10)
  const t12 = earlierTable(t11)
  const t13 = earlierTable(t12)
  const t14 = earlierTable(t13)
  const t15 = earlierTable(t14)

  /** Returns the CRC-32 of the bytes between two offsets, continuing `previous`, as an unsigned 32-bit number. */
  function crc32(bytes: Uint8Array, start = 0, end = bytes.length, previous = 0): number {
    let crc = ~previous
    let i = start
    for (; i + 16 <= end; i += 16) {
      // These lookups do not depend on the checksum of the bytes before.
      const later =
        t11[bytes[i + 4]!]! ^
        t10[bytes[i + 5]!]! ^
        t9[bytes[i + 6]!]! ^
        t8[bytes[i + 7]!]! ^
        t7[bytes[i + 8]!]! ^
        t6[bytes[i + 9]!]! ^
        t5[bytes[i + 10]!]! ^
        t4[bytes[i + 11]!]! ^
        t3[bytes[i + 12]!]! ^
        t2[bytes[i + 13]!]! ^
        t1[bytes[i + 14]!]! ^
        t0[bytes[i + 15]!]!
      crc =
        later ^
        t15[(crc ^ bytes[i]!) & 0xff]! ^
        t14[((crc >>> 8) ^ bytes[i + 1]!) & 0xff]! ^
        t13[((crc >>> 16) ^ bytes[i + 2]!) & 0xff]! ^
        t12[(crc >>> 24) ^ bytes[i + 3]!]!
    }
    for (; i + 4 <= end; i += 4) {
      crc =
        t3[(crc ^ bytes[i]!) & 0xff]! ^
        t2[((crc >>> 8) ^ bytes[i + 1]!) & 0xff]! ^
        t1[((crc >>> 16) ^ bytes[i + 2]!) & 0xff]! ^
        t0[(crc >>> 24) ^ bytes[i + 3]!]!
    }
    for (; i < end; i++) crc = t0[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8)
    return ~crc >>> 0
  }

  /** Returns the CRC-32 of the bytes that `writeText` writes, from one UTF-16 unit on. */
  function crc32Text(text: string, start = 0, previous = 0): number {
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

  return { crc32, crc32Text }
}

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
