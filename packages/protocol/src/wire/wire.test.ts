import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readACLList } from '../gen/records.gen.ts'
import { OPEN_ACL_UNSAFE } from '../tables/acl.ts'
import { adler32 } from '../tables/adler32.ts'
import { OPEN_ACL_BYTES } from '../tables/open-acl.ts'
import { copyRange } from './buffers.ts'
import { ProtocolError } from './error.ts'
import { FrameSplitter } from './frames.ts'
import { Reader } from './reader.ts'
import { Writer } from './writer.ts'

type Value =
  | { readonly kind: 'bool'; readonly value: boolean }
  | { readonly kind: 'byte' | 'int' | 'longNumber'; readonly value: number }
  | { readonly kind: 'long'; readonly value: bigint }
  | { readonly kind: 'buffer'; readonly value: Uint8Array | null }
  | { readonly kind: 'string'; readonly value: string | null }

const safe = fc.oneof(
  fc.maxSafeInteger(),
  fc.constantFrom(
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    -1,
    0,
    2 ** 32,
    -(2 ** 32),
    2 ** 31,
    -(2 ** 31) - 1,
  ),
)
const value: fc.Arbitrary<Value> = fc.oneof(
  fc.record({ kind: fc.constant('bool' as const), value: fc.boolean() }),
  fc.record({ kind: fc.constant('byte' as const), value: fc.integer({ min: -128, max: 127 }) }),
  fc.record({ kind: fc.constant('int' as const), value: fc.integer() }),
  fc.record({ kind: fc.constant('longNumber' as const), value: safe }),
  fc.record({ kind: fc.constant('long' as const), value: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n) }),
  fc.record({ kind: fc.constant('buffer' as const), value: fc.option(fc.uint8Array({ maxLength: 200 })) }),
  fc.record({ kind: fc.constant('string' as const), value: fc.option(fc.string({ maxLength: 40 })) }),
)

/** Encodes a value with a DataView. */
function simple(one: Value): Uint8Array {
  const { kind, value } = one
  const view = new DataView(new ArrayBuffer(8))
  if (kind === 'bool') return Uint8Array.of(value ? 1 : 0)
  if (kind === 'byte') return Uint8Array.of(value & 255)
  if (kind === 'int') view.setInt32(0, value)
  if (kind === 'int') return new Uint8Array(view.buffer, 0, 4)
  if (kind === 'long' || kind === 'longNumber') view.setBigInt64(0, BigInt(value))
  if (kind === 'long' || kind === 'longNumber') return new Uint8Array(view.buffer)
  const bytes =
    value === null
      ? new Uint8Array(0)
      : typeof value === 'string'
        ? new TextEncoder().encode(value)
        : (value as Uint8Array)
  view.setInt32(0, value === null ? -1 : bytes.length)
  return Uint8Array.from([...new Uint8Array(view.buffer, 0, 4), ...bytes])
}

function write(writer: Writer, one: Value): void {
  if (one.kind === 'bool') writer.bool(one.value)
  else if (one.kind === 'long') writer.long(one.value)
  else if (one.kind === 'buffer') writer.buffer(one.value)
  else if (one.kind === 'string') writer.string(one.value)
  else writer[one.kind](one.value)
}

const concatenated = (parts: Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]))

describe('Writer and Reader', () => {
  it('write the same bytes as a DataView, from any initial capacity, and read them back', () => {
    fc.assert(
      fc.property(fc.array(value, { maxLength: 30 }), fc.integer({ min: 1, max: 64 }), (values, capacity) => {
        const writer = new Writer(capacity)
        for (const one of values) write(writer, one)
        const bytes = concatenated(values.map(simple))
        expect(writer.length).toBe(bytes.length)
        expect(writer.take()).toEqual(bytes)
        const reader = new Reader(bytes)
        for (const one of values) expect(reader[one.kind]()).toEqual(one.value)
        expect(reader.remaining).toBe(0)
      }),
      { numRuns: 2000 },
    )
  })

  it('overwrite lengths and numbers, truncate, and transfer the bytes', () => {
    const writer = new Writer(1)
    const mark = writer.beginFrame()
    writer.longNumber(1)
    writer.int(2)
    writer.int(3)
    writer.truncate(writer.length - 4)
    writer.longNumberAt(4, -(2 ** 40) - 7)
    writer.intAt(12, 9)
    writer.range(new DataView(Uint8Array.of(1, 2, 3, 4).buffer), 1, 3)
    writer.range(new DataView(new Uint8Array(300).fill(5).buffer), 10, 210)
    writer.endFrame(mark)
    const taken = writer.take()
    expect(writer.length).toBe(0)
    writer.int(77)
    const reader = new Reader(taken)
    expect([reader.int(), reader.longNumber(), reader.int()]).toEqual([214, -(2 ** 40) - 7, 9])
    expect(reader.raw(202)).toEqual(Uint8Array.from([2, 3, ...new Array<number>(200).fill(5)]))
    expect(() => reader.raw(-1)).toThrow(ProtocolError)
  })

  it('refuse a long that is not exact as a number, without advancing', () => {
    for (const long of [2n ** 53n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n)]) {
      const writer = new Writer()
      writer.long(long)
      const reader = new Reader(writer.take())
      expect(() => reader.longNumber()).toThrow(`got ${long}`)
      expect(reader.long()).toBe(long)
    }
  })

  it('refuse elements longer than maxElement, and read counts below -1 as 0', () => {
    const writer = new Writer()
    writer.int(-2)
    writer.int(-1)
    writer.buffer(new Uint8Array(11))
    const bytes = writer.take()
    const reader = new Reader(bytes, 0, bytes.length, 10)
    expect([reader.vectorLength(), reader.vectorLength()]).toEqual([0, -1])
    expect(() => reader.buffer()).toThrow(
      'Expected a length from -1 to 10, got 11 (reading a buffer at offset 8)',
    )
    reader.reset(bytes, 0, 4)
    expect(() => reader.string()).toThrow('got -2')
  })

  it('count the offset of an error from the start of the reader', () => {
    const reader = new Reader().reset(new Uint8Array(9), 5, 9)
    reader.byte()
    expect(() => reader.int()).toThrow(expect.objectContaining({ offset: 1, field: 'an int' }))
  })

  it('resetToView reads views of one array, with offsets of the array, and errors relative to each view', () => {
    const array = Uint8Array.from({ length: 40 }, (_, i) => i)
    const reader = new Reader()
    for (const [start, end] of [
      [8, 16],
      [0, 40],
      [39, 40],
    ] as const) {
      reader.resetToView(array.subarray(start, end))
      expect([reader.start, reader.end, reader.offset, reader.bytes.length]).toEqual([start, end, start, 40])
      expect(reader.byte()).toBe(start)
      expect([...reader.raw(end - start - 1)]).toEqual([...array.subarray(start + 1, end)])
      expect(() => reader.byte()).toThrow(expect.objectContaining({ offset: end - start }))
    }
    expect(reader.resetToView(Uint8Array.of(0, 0, 0, 7)).int()).toBe(7)
    // A view that was passed to reset is not taken for the whole array.
    reader.reset(array.subarray(4, 9))
    expect(reader.resetToView(array.subarray(10, 14)).byte()).toBe(10)
    reader.reset(array.subarray(0, 9))
    expect(reader.resetToView(array.subarray(10, 14)).int()).toBe(0x0a0b0c0d)
  })

  it('skipBuffer skips strings and buffers, and returns where their bytes begin, or -1 for null', () => {
    const writer = new Writer()
    writer.string('abc')
    writer.buffer(null)
    writer.buffer(new Uint8Array(0))
    writer.int(9)
    const reader = new Reader(writer.take())
    expect([reader.skipBuffer(), reader.offset]).toEqual([4, 7])
    expect([reader.skipBuffer(), reader.skipBuffer(), reader.offset]).toEqual([-1, 15, 15])
    expect(() => reader.skipBuffer()).toThrow('Expected 9 more bytes, got 0')
  })

  it('hold no array before the first write', () => {
    const writer = new Writer(64)
    expect(writer.bytes().buffer.byteLength).toBe(0)
    writer.int(7)
    expect(writer.bytes().buffer.byteLength).toBe(64)
    expect([...writer.take()]).toEqual([0, 0, 0, 7])
    expect(writer.bytes().buffer.byteLength).toBe(0)
    expect([...writer.take()]).toEqual([])
  })

  it('bufferCopy copies short and long buffers, and returns null for null', () => {
    const writer = new Writer()
    const long = new Uint8Array(300).map((_, i) => i)
    for (const value of [Uint8Array.of(1, 2, 3), long, new Uint8Array(0), null]) writer.buffer(value)
    const bytes = writer.take()
    const reader = new Reader(bytes)
    const [short, far, empty, none] = [
      reader.bufferCopy()!,
      reader.bufferCopy()!,
      reader.bufferCopy()!,
      reader.bufferCopy(),
    ]
    bytes.fill(0)
    expect([[...short], Buffer.compare(far, long), empty.length, none]).toEqual([[1, 2, 3], 0, 0, null])
    expect(short.buffer.byteLength).toBe(3)
  })

  it('drop everything on reset', () => {
    const writer = new Writer()
    writer.int(1)
    writer.reset()
    writer.byte(2)
    expect(writer.bytes()).toEqual(Uint8Array.of(2))
  })
})

describe('FrameSplitter', () => {
  it('passes on nothing after stop, not even from the current chunk', () => {
    const got: number[] = []
    const splitter: FrameSplitter = new FrameSplitter({
      maxLength: 10,
      frame: (bytes, start) => {
        got.push(bytes[start]!)
        if (bytes[start] === 2) splitter.stop()
      },
    })
    splitter.push(Uint8Array.of(0, 0, 0, 1, 1, 0, 0, 0, 1, 2, 0, 0, 0, 1, 3, 0, 0))
    splitter.push(Uint8Array.of(0, 1, 4))
    expect([got, splitter.pending]).toEqual([[1, 2], 0])
  })

  it('refuses frames shorter than minLength', () => {
    const splitter = new FrameSplitter({ maxLength: 10, minLength: 4, frame: () => expect.unreachable() })
    expect(() => splitter.push(Uint8Array.of(0, 0, 0, 3))).toThrow(
      'Expected a frame of 4 to 10 bytes, got a length of 3',
    )
  })

  it('passes on nothing after an invalid length, wherever the chunk ends', () => {
    for (let cut = 0; cut <= 4; cut++) {
      const splitter = new FrameSplitter({ maxLength: 10, frame: () => expect.unreachable() })
      const bytes = Uint8Array.of(0x7f, 255, 255, 255)
      expect(() => {
        splitter.push(bytes.subarray(0, cut))
        splitter.push(bytes.subarray(cut))
      }).toThrow(ProtocolError)
      splitter.push(Uint8Array.of(0, 0, 0, 1, 9))
      expect(splitter.pending).toBe(0)
    }
  })
})

it('skipIfEqual skips equal bytes, and does not advance over others', () => {
  const reader = new Reader(Uint8Array.of(9, 1, 2, 3, 1, 2), 1)
  const expected = Uint8Array.of(1, 2, 3)
  expect([reader.skipIfEqual(Uint8Array.of(1, 3)), reader.offset]).toEqual([false, 1])
  expect([reader.skipIfEqual(expected), reader.offset]).toEqual([true, 4])
  expect([reader.skipIfEqual(expected), reader.offset, reader.byte()]).toEqual([false, 4, 1])
})

it('OPEN_ACL_BYTES is the encoding of OPEN_ACL_UNSAFE', () => {
  expect(readACLList(new Reader(OPEN_ACL_BYTES))).toEqual(OPEN_ACL_UNSAFE)
})

it('Writer.adler32 is the checksum of the bytes from an offset on', () => {
  const writer = new Writer(4)
  for (let i = 0; i < 100; i++) writer.int(i * 7919)
  expect(writer.checksum(adler32, 8)).toBe(adler32(writer.bytes().slice(8)))
})

describe('copyRange', () => {
  it('copies the same bytes as set, and no others, between any offsets of any views', () => {
    const from = Uint8Array.from({ length: 700 }, (_, at) => (at * 7 + (at >> 8)) & 0xff)
    const offset = fc.integer({ min: 0, max: 40 })
    const length = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 250, max: 600 }))
    fc.assert(
      fc.property(offset, offset, offset, length, (skipped, start, at, count) => {
        const source = from.subarray(skipped)
        const [plain, got] = [new Uint8Array(700).fill(0xee), new Uint8Array(700).fill(0xee)]
        plain.subarray(3).set(source.subarray(start, start + count), at)
        const into = new DataView(got.buffer, 3)
        copyRange(new DataView(from.buffer, skipped), start, start + count, into, at)
        expect(got).toEqual(plain)
      }),
      { numRuns: 1000 },
    )
  })
})
