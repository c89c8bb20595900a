import { digestBlocks } from './digest-blocks.ts'

/**
 * MD5 in JavaScript: Web Crypto does not have it, and DIGEST-MD5 needs it. MD5 is not collision resistant, so nothing else may use
 * it.
 */
export const md5 = (message: Uint8Array): Uint8Array =>
  digestBlocks(message, Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476), true, round)

/** The constants of RFC 1321: the first 32 bits of the sines of 1, 2, … */
const sines = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32))
const rotations = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
] as const

function round(state: Int32Array, wordAt: (index: number) => number): void {
  const words = Int32Array.from({ length: 16 }, (_, i) => wordAt(i))
  let [a, b, c, d] = state as unknown as [number, number, number, number]
  for (let i = 0; i < 64; i++) {
    const quarter = i >> 4
    const [mix, word] =
      quarter === 0
        ? [(b & c) | (~b & d), i]
        : quarter === 1
          ? [(d & b) | (~d & c), (5 * i + 1) & 15]
          : quarter === 2
            ? [b ^ c ^ d, (3 * i + 5) & 15]
            : [c ^ (b | ~d), (7 * i) & 15]
    const sum = (a + mix + sines[i]! + words[word]!) | 0
    const bits = rotations[quarter]![i & 3]!
    a = d
    d = c
    c = b
    b = (b + ((sum << bits) | (sum >>> (32 - bits)))) | 0
  }
  state[0]! += a
  state[1]! += b
  state[2]! += c
  state[3]! += d
}
