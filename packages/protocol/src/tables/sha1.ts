import { digestBlocks } from './digest-blocks.ts'

/**
 * SHA-1 in JavaScript, since Web Crypto is asynchronous. Ids of scheme `digest` contain it; they do not depend on its collision
 * resistance.
 */
export const sha1 = (message: Uint8Array): Uint8Array =>
  digestBlocks(
    message,
    Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0),
    false,
    round,
  )

function round(state: Int32Array, wordAt: (index: number) => number): void {
  const words = Int32Array.from({ length: 80 }, (_, i) => (i < 16 ? wordAt(i) : 0))
  for (let i = 16; i < 80; i++)
    words[i] = rotate(words[i - 3]! ^ words[i - 8]! ^ words[i - 14]! ^ words[i - 16]!, 1)
  let [a, b, c, d, e] = state as unknown as [number, number, number, number, number]
  for (let i = 0; i < 80; i++) {
    const [mix, constant] =
      i < 20
        ? [(b & c) | (~b & d), 0x5a827999]
        : i < 40
          ? [b ^ c ^ d, 0x6ed9eba1]
          : i < 60
            ? [(b & c) | (b & d) | (c & d), 0x8f1bbcdc]
            : [b ^ c ^ d, 0xca62c1d6]
    const next = (rotate(a, 5) + mix + e + constant + words[i]!) | 0
    e = d
    d = c
    c = rotate(b, 30)
    b = a
    a = next
  }
  state[0]! += a
  state[1]! += b
  state[2]! += c
  state[3]! += d
  state[4]! += e
}

const rotate = (value: number, bits: number): number => (value << bits) | (value >>> (32 - bits))

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Encodes bytes in standard Base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i += 3) {
    const group = (bytes[i]! << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0)
    text += alphabet[group >> 18]! + alphabet[(group >> 12) & 63]!
    text += i + 1 < bytes.length ? alphabet[(group >> 6) & 63]! : '='
    text += i + 2 < bytes.length ? alphabet[group & 63]! : '='
  }
  return text
}
