import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readAscii, readText, textByteLength, writeText } from './text.ts'

/** Encodes each UTF-16 unit on its own, by the table of UTF-8. */
function simplyWritten(text: string): Uint8Array {
  const bytes: number[] = []
  for (let i = 0; i < text.length; i++) {
    const bits = text.charCodeAt(i)
    if (bits <= 0x7f) bytes.push(bits)
    else if (bits <= 0x7ff) bytes.push(0b1100_0000 + (bits >> 6), 0b1000_0000 + (bits % 64))
    else bytes.push(0b1110_0000 + (bits >> 12), 0b1000_0000 + ((bits >> 6) % 64), 0b1000_0000 + (bits % 64))
  }
  return Uint8Array.from(bytes)
}

/** Decodes with TextDecoder, after replacing each surrogate, complete or truncated after its second byte, by one replacement. */
function simplyRead(bytes: Uint8Array): string {
  const clean: number[] = []
  for (let i = 0; i < bytes.length; i++) {
    const surrogate = bytes[i] === 0xed && (bytes[i + 1]! & 0xe0) === 0xa0
    if (surrogate) clean.push(0xef, 0xbf, 0xbd)
    else clean.push(bytes[i]!)
    if (surrogate) i += (bytes[i + 2]! & 0xc0) === 0x80 ? 2 : 1
  }
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(clean))
}

const units = fc.array(
  fc.oneof(fc.nat(0x7f), fc.nat(0x7ff), fc.nat(0xffff), fc.integer({ min: 0xd7ff, max: 0xe000 })),
  { maxLength: 20 },
)
const likely = fc.oneof(
  fc.nat(0x7f),
  fc.nat(255),
  fc.integer({ min: 0x80, max: 0xbf }),
  fc.constantFrom(0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff),
)

describe('text', () => {
  it('is written unit by unit, in textByteLength bytes', () => {
    fc.assert(
      fc.property(units, fc.nat(5), fc.constantFrom(0, 0, 0, 1024), (codes, at, before) => {
        const text = 'x'.repeat(before) + String.fromCharCode(...codes)
        const simple = simplyWritten(text)
        const into = new Uint8Array(at + simple.length)
        expect(writeText(text, into, at)).toBe(at + simple.length)
        // As text: `toEqual` of a thousand bytes takes longer than all else here.
        expect(into.subarray(at).join()).toBe(simple.join())
        expect(textByteLength(text)).toBe(simple.length)
      }),
      { numRuns: 10_000 },
    )
  })

  it('is read like TextDecoder except for surrogates, from any bytes', () => {
    fc.assert(
      fc.property(
        fc.array(likely, { maxLength: 24 }),
        fc.nat(3),
        fc.constantFrom(0, 0, 0, 1024),
        (codes, before, more) => {
          const fill = (count: number): number[] => new Array<number>(count).fill(0x41)
          const bytes = Uint8Array.from([...fill(before), ...fill(more), ...codes, 0x42])
          expect(readText(bytes, before, bytes.length - 1)).toBe(
            simplyRead(bytes.subarray(before, bytes.length - 1)),
          )
        },
      ),
      { numRuns: 20_000 },
    )
  })

  it('without surrogates is read as it was written, long texts too', () => {
    for (const text of ['', '/a/b', 'é€', 'x'.repeat(100_000), 'ü'.repeat(50_000), '\u0000\uffff']) {
      const bytes = simplyWritten(text)
      expect(readText(bytes, 0, bytes.length)).toBe(text)
    }
  })

  it('in ASCII is read by readAscii like by the platform', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(0x7f), { maxLength: 60 }), fc.nat(5), (codes, at) => {
        const bytes = Uint8Array.from([...Array.from({ length: at }, () => 0xff), ...codes, 0xff])
        const text = String.fromCharCode(...codes)
        expect([readAscii(bytes, at, at + codes.length), readText(bytes, at, at + codes.length)]).toEqual([
          text,
          text,
        ])
      }),
    )
  })
})
