import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Copies } from './copies.ts'

it('gives copies that stay as they are, whatever becomes of what was copied and of other copies', () => {
  const sizes = fc.oneof(fc.nat(200), fc.integer({ min: 4000, max: 4200 }), fc.constant(0))
  fc.assert(
    fc.property(fc.array(sizes, { maxLength: 80 }), (lengths) => {
      const copies = new Copies()
      const made = lengths.map((length, index) => {
        const data = new Uint8Array(length).fill(index + 1)
        const copy = copies.of(data)
        data.fill(0)
        return copy
      })
      expect(made.map((copy) => [...copy])).toEqual(
        lengths.map((length, index) => Array.from({ length }, () => (index + 1) & 0xff)),
      )
    }),
    { seed: 6, numRuns: 60 },
  )
})

it('gives large data an array of its own', () => {
  const data = new Uint8Array(5000).fill(7)
  const copy = new Copies().of(data)
  expect([copy, copy.buffer.byteLength]).toEqual([data, 5000])
})
