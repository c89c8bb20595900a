import { describe, expect, it } from 'vitest'
import { nodeCryptography } from './cryptography.ts'

const bytes = (length: number, first: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (first + index) & 0xff)

describe('nodeCryptography', () => {
  it('hashes pieces as their concatenation', () => {
    const hash = nodeCryptography.sha256()
    for (const piece of ['a', 'bc']) hash.update(new TextEncoder().encode(piece))
    const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    expect(hash.digest()).toBe(expected)
    expect(nodeCryptography.sha256Of(new TextEncoder().encode('abc'))).toBe(expected)
  })

  it('opens what it has sealed, and nothing that differs in one input', () => {
    const [key, nonce, name, plain] = [bytes(32, 1), bytes(12, 7), bytes(3, 9), bytes(100, 50)]
    const sealed = nodeCryptography.seal(key, nonce, name, plain)
    expect(sealed).toHaveLength(116)
    expect(nodeCryptography.open(key, nonce, name, sealed)).toEqual(plain)
    const flipped = sealed.slice()
    flipped[3]! ^= 1
    expect(nodeCryptography.open(key, nonce, name, flipped)).toBeUndefined()
    expect(nodeCryptography.open(bytes(32, 2), nonce, name, sealed)).toBeUndefined()
    expect(nodeCryptography.open(key, bytes(12, 8), name, sealed)).toBeUndefined()
    expect(nodeCryptography.open(key, nonce, bytes(3, 10), sealed)).toBeUndefined()
    expect(nodeCryptography.open(key, nonce, name, sealed.subarray(0, 9))).toBeUndefined()
  })
})
