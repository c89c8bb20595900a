/**
 * CRC-32 (as zlib's) and Adler-32 without a platform.
 * FENCED: CRC-32 takes eight bytes at a time from eight tables, Adler-32 defers its division.
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

/** Adler-32 of the bytes between two offsets, going on from `previous` (1 at the start). An unsigned 32-bit number. */
export function adler32(bytes: Uint8Array, start = 0, end = bytes.length, previous = 1): number {
  let low = previous & 0xffff
  let high = previous >>> 16
  let i = start
  while (i < end) {
    // As many bytes as keep both sums exact below 2^32.
    const stop = Math.min(i + 3800, end)
    for (; i < stop; i++) {
      low += bytes[i]!
      high += low
    }
    low %= 65521
    high %= 65521
  }
  return ((high << 16) | low) >>> 0
}
