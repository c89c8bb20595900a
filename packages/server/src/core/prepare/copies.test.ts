import { Reader, Writer } from '@zabra/protocol'
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

it('copies the buffer to which a reader comes next, and passes over it', () => {
  const sizes = fc.oneof(fc.nat(300), fc.integer({ min: 4000, max: 4200 }), fc.constant(null))
  fc.assert(
    fc.property(fc.array(sizes, { maxLength: 40 }), (lengths) => {
      const writer = new Writer()
      const data = lengths.map((length, index) =>
        length === null ? null : new Uint8Array(length).fill(index + 1),
      )
      for (const [index, each] of data.entries()) {
        writer.buffer(each)
        writer.int(index)
      }
      const chunk = writer.take()
      const [copies, reader] = [new Copies(), new Reader(chunk)]
      const made = data.map((_, index) => {
        const copy = copies.next(reader)
        expect(reader.int()).toBe(index)
        return copy
      })
      chunk.fill(0xee)
      expect(made).toEqual(data)
    }),
    { seed: 7, numRuns: 60 },
  )
})

it('copies also what lies in an array of the platform, whose `slice` gives a view', () => {
  for (const length of [100, 5000]) {
    const chunk = Buffer.alloc(4 + length, 1)
    chunk.writeInt32BE(length)
    const copies = new Copies()
    const made = [copies.next(new Reader(chunk)), copies.of(chunk.subarray(4))]
    chunk.fill(0xee)
    for (const copy of made) expect(copy!.every((byte) => byte === 1)).toBe(true)
  }
})
