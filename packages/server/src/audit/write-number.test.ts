import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MAX_DIGITS, writeHex, writeInteger } from './write-number.ts'

const bytes = new Uint8Array(3 + MAX_DIGITS)

function written(write: typeof writeHex, value: number): string {
  const end = write(value, bytes, 3)
  return new TextDecoder().decode(bytes.subarray(3, end))
}

const EDGES = [0, 1, 9, 10, 99, 100, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 1e6, 1e12, 2 ** 53 - 1]

it('writes integers as JSON has them', () => {
  for (const value of EDGES.flatMap((edge) => [edge, 0 - edge]))
    expect(written(writeInteger, value)).toBe(String(value))
  fc.assert(fc.property(fc.maxSafeInteger(), (value) => written(writeInteger, value) === String(value)))
  fc.assert(fc.property(fc.integer(), (value) => written(writeInteger, value) === String(value)))
})

it('writes integers from 0 in hexadecimal', () => {
  for (const value of EDGES) expect(written(writeHex, value)).toBe(value.toString(16))
  fc.assert(fc.property(fc.maxSafeNat(), (value) => written(writeHex, value) === value.toString(16)))
})
