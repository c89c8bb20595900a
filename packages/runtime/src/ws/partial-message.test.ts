import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PartialMessage } from './partial-message.ts'

/** Returns a frame; `isLast` of a message, or a control frame. */
function frame(type: number, isLast: boolean, length: number, isMasked: boolean): number[] {
  const mask = isMasked ? 0x80 : 0
  const extended =
    length < 126
      ? [mask | length]
      : length < 65_536
        ? [mask | 126, length >> 8, length & 255]
        : [mask | 127, 0, 0, 0, 0, 0, length >> 16, (length >> 8) & 255, length & 255]
  return [
    (isLast ? 0x80 : 0) | type,
    ...extended,
    ...(isMasked ? [1, 2, 3, 4] : []),
    ...new Uint8Array(length),
  ]
}

it('a partial message takes the chunks that hold a part of it, and nothing once it is complete', () => {
  const one = new PartialMessage()
  const push = (...bytes: number[]): number => {
    one.push(Uint8Array.from(bytes))
    return one.byteSize
  }
  expect(push(...frame(2, true, 5, true))).toBe(0)
  expect(push(...frame(2, true, 5, true), 0x02)).toBe(12 + 400)
  expect(push(0x81, 1, 2, 3, 4)).toBe(17 + 800)
  expect(push(9)).toBe(18 + 1200 + 150)
  expect(push(...frame(9, true, 3, true))).toBe(27 + 1600 + 150)
  expect(push(...frame(0, true, 0, true))).toBe(0)
  expect(push(...frame(2, false, 0, false))).toBe(2 + 400 + 150)
})

it('a partial message is one exactly while bytes of a frame or of a message are missing, wherever the chunks end', () => {
  const frames = fc.array(
    fc.record({
      fragments: fc.array(fc.constantFrom(0, 1, 125, 126, 300, 65_535, 65_536), {
        minLength: 1,
        maxLength: 3,
      }),
      isMasked: fc.boolean(),
      pings: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  )
  fc.assert(
    fc.property(frames, fc.array(fc.nat(70_000), { maxLength: 12 }), (messages, cuts) => {
      const bytes: number[] = []
      const ends = new Set<number>([0])
      for (const { fragments, isMasked, pings } of messages) {
        for (const [i, length] of fragments.entries()) {
          bytes.push(...frame(i === 0 ? 2 : 0, i === fragments.length - 1, length, isMasked))
          if (i === fragments.length - 1) ends.add(bytes.length)
          if (pings) bytes.push(...frame(9, true, 10, isMasked))
          if (pings && i === fragments.length - 1) ends.add(bytes.length)
        }
      }
      const all = Uint8Array.from(bytes)
      const partial = new PartialMessage()
      let at = 0
      for (const to of [...cuts.map((cut) => cut % all.length).sort((a, b) => a - b), all.length]) {
        partial.push(all.subarray(at, to))
        at = to
        expect(partial.byteSize > 0).toBe(!ends.has(at))
      }
    }),
    { numRuns: 100 },
  )
})
