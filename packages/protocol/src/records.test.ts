// oxlint-disable-next-line no-restricted-imports -- a test reads the file that it checks
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FrameSplitter, ProtocolError, Reader, Writer } from './index.ts'
import { generate } from './schema/generate.ts'
import { arbitraryOf, table } from './testing/arbitrary.ts'
import { readRecord, writeRecord } from './testing/conversation.ts'

const names = Object.keys(table)

/** Returns the ProtocolError of decoding malformed bytes, or undefined. Any other error fails the test. */
function failure(name: string, bytes: Uint8Array): ProtocolError | undefined {
  try {
    readRecord(name, new Reader(bytes))
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error
    throw error
  }
}

it('records.gen.ts is what the record table generates', () => {
  expect(readFileSync(new URL('./gen/records.gen.ts', import.meta.url), 'utf8')).toBe(generate())
})

describe.each(names)('%s', (name) => {
  const values = arbitraryOf(table[name]!)
  it('is decoded as it was encoded, and every truncation gives an offset and a field', () => {
    fc.assert(
      fc.property(values, (value) => {
        const writer = new Writer(1)
        writeRecord(name, writer, value)
        const bytes = writer.take()
        const reader = new Reader(bytes)
        expect(readRecord(name, reader)).toEqual(value)
        expect(reader.remaining).toBe(0)
        const wrong = [...bytes.keys()].filter((length) => {
          const error = failure(name, bytes.subarray(0, length))
          return error === undefined || error.offset > length || error.field === ''
        })
        expect(wrong).toEqual([])
      }),
      { seed: 1, numRuns: 25 },
    )
  })
})

it('the codecs decode 30,000 random frames or give a ProtocolError', () => {
  let state = 12345
  const next = (): number => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) >>> 8
  const refused = new Set<string>()
  for (let i = 0; i < 30_000; i++) {
    // Small bytes are common, so that lengths are often plausible.
    const bytes = Uint8Array.from({ length: next() % 48 }, () =>
      next() % 3 === 0 ? next() & 0xff : next() % 5 === 0 ? next() & 7 : 0,
    )
    const error = failure(names[i % names.length]!, bytes)
    if (error) refused.add(error.field)
  }
  expect([...refused].toSorted()).toEqual(['a bool', 'a buffer', 'a long', 'a string', 'an int'])
})

describe('FrameSplitter', () => {
  it('gives the same frames for any chunks', () => {
    const frames = fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 8 })
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (sent, cuts) => {
        const writer = new Writer()
        for (const frame of sent) writer.buffer(frame)
        const stream = writer.take()
        const got: Uint8Array[] = []
        const splitter = new FrameSplitter({
          maxLength: 30,
          frame: (bytes, start, end) => void got.push(bytes.slice(start, end)),
        })
        for (let at = 0, i = 0; at < stream.length; i++) {
          const size = cuts[i % cuts.length]!
          splitter.push(stream.subarray(at, at + size))
          at += size
        }
        expect(got).toEqual(sent)
      }),
      { seed: 2 },
    )
  })
  it.each([[-1], [31], [0x7fffffff]])('refuses a length of %d before it allocates memory', (length) => {
    const writer = new Writer()
    writer.int(length)
    const bytes = writer.take()
    const whole = new FrameSplitter({ maxLength: 30, frame: () => expect.unreachable() })
    expect(() => whole.push(bytes)).toThrow(ProtocolError)
    const cut = new FrameSplitter({ maxLength: 30, frame: () => expect.unreachable() })
    cut.push(bytes.subarray(0, 3))
    expect(() => cut.push(bytes.subarray(3))).toThrow(ProtocolError)
  })
})
