import { Reader, Writer } from '@zabra/protocol'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Arena } from './fields.ts'

it('Arena copies large data into an array of its own', () => {
  const data = new Uint8Array(5000).fill(7)
  const writer = new Writer()
  writer.buffer(data)
  const copy = new Arena().copyNext(new Reader(writer.take()))
  expect([copy, copy!.buffer.byteLength]).toEqual([data, 5000])
})

it('Arena copies the next buffer of a reader and moves the reader after it', () => {
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
      const [copies, reader] = [new Arena(), new Reader(chunk)]
      const made = data.map((_, index) => {
        const copy = copies.copyNext(reader)
        expect(reader.int()).toBe(index)
        return copy
      })
      chunk.fill(0xee)
      expect(made).toEqual(data)
    }),
    { seed: 7, numRuns: 60 },
  )
})

it('Arena copies large data of a Node Buffer, whose `slice` returns a view', () => {
  for (const length of [100, 5000]) {
    const chunk = Buffer.alloc(4 + length, 1)
    chunk.writeInt32BE(length)
    const copy = new Arena().copyNext(new Reader(chunk))
    chunk.fill(0xee)
    expect(copy!.every((byte) => byte === 1)).toBe(true)
  }
})
