import { encodeLongText, suitsTextEncoder } from '../wire/text.ts'

/**
 * CRC-32 (as zlib's) without a platform.
 * Optimised: processes sixteen bytes at a time with sixteen tables.
 * Why: it runs over every byte of a log or snapshot. Oracles: zlib and a loop over bytes, in `tables.test.ts`.
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
    if (suitsTextEncoder(text)) {
      const bytes = encodeLongText(text.slice(start))
      return crc32(bytes, 0, bytes.length, previous)
    }
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
