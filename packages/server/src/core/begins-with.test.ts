import fc from 'fast-check'
import { expect, it } from 'vitest'
import { beginsWith } from './begins-with.ts'

it('beginsWith tells the same as startsWith', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'ü', '\u{1f600}'), maxLength: 5 })
  fc.assert(
    fc.property(text, text, (one, other) => {
      expect(beginsWith(one, other)).toBe(one.startsWith(other))
      expect(beginsWith(one + other, one)).toBe(true)
    }),
    { numRuns: 500 },
  )
})
