import { expect, it } from 'vitest'
import { lengthWithoutTrailingZeros } from './log-tail.ts'

/** The same in a plain loop. */
function plainLoop(bytes: Uint8Array, length: number): number {
  let end = length
  while (end > 0 && bytes[end - 1] === 0) end--
  return end
}

it('lengthWithoutTrailingZeros agrees with a plain loop, for every length and alignment', () => {
  for (let offset = 0; offset < 5; offset++) {
    const bytes = new Uint8Array(new ArrayBuffer(320), offset, 300)
    for (let length = 0; length <= 300; length++) expect(lengthWithoutTrailingZeros(bytes, length)).toBe(0)
    for (let last = 0; last < 300; last++) {
      bytes.fill(0)
      bytes[last] = last % 2 === 0 ? 0x80 : 1
      for (const length of [0, 1, last, last + 1, last + 2, 255, 256, 257, 300])
        expect([offset, last, length, lengthWithoutTrailingZeros(bytes, length)]).toEqual([
          offset,
          last,
          length,
          plainLoop(bytes, length),
        ])
    }
  }
})

it('lengthWithoutTrailingZeros ignores bytes after the length', () => {
  const bytes = new Uint8Array(200).fill(7, 150)
  expect(lengthWithoutTrailingZeros(bytes, 150)).toBe(0)
  expect(lengthWithoutTrailingZeros(bytes, 151)).toBe(151)
})
