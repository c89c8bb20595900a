import { adler32, Writer } from '@zabra/protocol'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PieceWriter } from './piece-writer.ts'

interface Part {
  readonly bytes: Uint8Array
  readonly isAttached: boolean
}

const parts = fc.array(fc.record({ bytes: fc.uint8Array({ maxLength: 200 }), isAttached: fc.boolean() }), {
  maxLength: 12,
})

/** Writes the same as a frame behind a part, with a part dropped and a number overwritten. */
function write(
  writer: Writer,
  before: readonly Part[],
  dropped: readonly Part[],
  after: readonly Part[],
): number {
  const add = ({ bytes, isAttached }: Part): void => {
    if (isAttached && writer instanceof PieceWriter) writer.attach(bytes)
    else writer.raw(bytes)
  }
  before.forEach(add)
  const frame = writer.beginFrame()
  before.forEach(add)
  const mark = writer.length
  dropped.forEach(add)
  writer.truncate(mark)
  const number = writer.length
  writer.longNumber(0)
  after.forEach(add)
  writer.longNumberAt(number, -7)
  writer.endFrame(frame)
  return frame
}

const concatenated = (pieces: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(pieces.flatMap((piece) => [...piece]))

it('a writer of pieces gives the same bytes as one that copies, and is empty after them', () => {
  const end = fc.constantFrom('take', 'takePieces', 'bytesFrom', 'checksum', 'release' as const)
  fc.assert(
    fc.property(
      parts,
      parts,
      parts,
      fc.integer({ min: 1, max: 64 }),
      end,
      (before, dropped, after, capacity, how) => {
        const copying = new Writer()
        const frame = write(copying, before, dropped, after)
        const expected = copying.take()
        const writer = new PieceWriter(capacity)
        expect(write(writer, before, dropped, after)).toBe(frame)
        expect(writer.length).toBe(expected.length)
        if (how === 'checksum')
          expect(writer.checksum(adler32, frame)).toBe(adler32(expected, frame, expected.length))
        if (how === 'bytesFrom') expect(writer.bytesFrom(frame)).toEqual(expected.subarray(frame))
        if (how === 'release') writer.release()
        else
          expect(how === 'takePieces' ? concatenated(writer.takePieces()) : writer.take()).toEqual(expected)
        expect([writer.length, writer.hasAttachments, writer.pieces()]).toEqual([0, false, []])
      },
    ),
    { numRuns: 300 },
  )
})

it('a writer of pieces refers to what is attached', () => {
  const writer = new PieceWriter()
  writer.int(1)
  const long = new Uint8Array(100)
  writer.attach(long)
  expect(writer.hasAttachments).toBe(true)
  expect(writer.takePieces()[1]).toBe(long)
})
