import { Writer } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { corruptionIn, findWholeEntry, lengthWithoutTrailingZeros } from './log-tail.ts'
import { hexBytes } from './testing/log-fixture.ts'
import { writeEncodedEntry } from './txn-codec.ts'

/** The same in a plain loop. */
function plainLoop(bytes: Uint8Array, length: number): number {
  let end = length
  while (end > 0 && bytes[end - 1] === 0) end--
  return end
}

it('lengthWithoutTrailingZeros agrees with a plain loop, for every length and alignment', () => {
  const wrong: unknown[] = []
  for (let offset = 0; offset < 5; offset++) {
    const bytes = new Uint8Array(new ArrayBuffer(320), offset, 300)
    const compare = (last: number, length: number): void => {
      const got = lengthWithoutTrailingZeros(bytes, length)
      const expected = plainLoop(bytes, length)
      if (got !== expected) wrong.push({ offset, last, length, got, expected })
    }
    for (let length = 0; length <= 300; length++) compare(-1, length)
    for (let last = 0; last < 300; last++) {
      bytes.fill(0)
      bytes[last] = last % 2 === 0 ? 0x80 : 1
      for (const length of [0, 1, last, last + 1, last + 2, 255, 256, 257, 300]) compare(last, length)
    }
  }
  expect(wrong).toEqual([])
})

it('lengthWithoutTrailingZeros ignores bytes after the length', () => {
  const bytes = new Uint8Array(200).fill(7, 150)
  expect(lengthWithoutTrailingZeros(bytes, 150)).toBe(0)
  expect(lengthWithoutTrailingZeros(bytes, 151)).toBe(151)
})

/** Returns an entry, of 53 bytes unless its payload has another length. */
function entry(zxid: number, length = 40): Uint8Array {
  const payload = new Uint8Array(length).fill(7)
  new DataView(payload.buffer).setBigInt64(12, BigInt(zxid))
  const writer = new Writer()
  writeEncodedEntry(writer, payload)
  return writer.take()
}

const joined = (...parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts))
/** Returns the head of an entry whose checksum matches nothing. */
const head = (length: number): Uint8Array =>
  hexBytes(`00000000 01020304 ${(length >>> 0).toString(16).padStart(8, '0')}`)

describe('findWholeEntry', () => {
  it('finds an entry at any offset, above the last transaction', () => {
    for (const offset of [12, 13, 500]) {
      const rest = joined(new Uint8Array(offset).fill(0xff), entry(0x2_0000_0005))
      expect(findWholeEntry(rest, 0x2_0000_0004)).toBe(offset)
      expect(findWholeEntry(rest, 0x2_0000_0005)).toBe(-1)
      expect(findWholeEntry(rest.subarray(0, -1), 0)).toBe(-1)
    }
  })

  it('finds none in bytes that are too few for one', () => {
    for (const length of [0, 1, 11, 12, 44]) expect(findWholeEntry(new Uint8Array(length), 0)).toBe(-1)
  })

  it('finds the shortest entry, whose payload is a header alone, and none below it', () => {
    const rest = (length: number): Uint8Array => joined(new Uint8Array(12).fill(0xff), entry(9, length))
    expect(findWholeEntry(rest(32), 0)).toBe(12)
    expect(findWholeEntry(rest(31), 0)).toBe(-1)
    expect(findWholeEntry(joined(rest(31), new Uint8Array(50).fill(1)), 0)).toBe(-1)
  })

  it('takes bytes for an entry once it has summed up 64 MiB of bytes that look like one and are none', () => {
    const step = hexBytes('00000000 01020304 00100000 42424242')
    const rest = (candidates: number): Uint8Array =>
      joined(
        hexBytes('ffffffff ffffffff ffffffff ffffffff'),
        ...Array.from({ length: candidates }, () => step),
        new Uint8Array((1 << 20) + 32).fill(0x42),
      )
    expect(findWholeEntry(rest(64), 0)).toBe(-1)
    expect(findWholeEntry(rest(65), 0)).toBe(65 * 16)
  })

  it('skips what an entry at the start claims as its content, which a client may have chosen', () => {
    const rest = (claimed: number): Uint8Array => joined(head(claimed), new Uint8Array(20).fill(1), entry(9))
    // The content would end inside the entry, right before it, or be shorter than that of any entry.
    for (const [claimed, found] of [
      [32, -1],
      [72, -1],
      [31, 32],
      [0, 32],
      [-1, 32],
      [0x4000_0001, 32],
      [0x4000_0000, -1],
    ] as const)
      expect([claimed, findWholeEntry(rest(claimed), 0)]).toEqual([claimed, found])
    expect(findWholeEntry(joined(head(40), new Uint8Array(41).fill(1), entry(9)), 0)).toBe(53)
    expect(findWholeEntry(joined(entry(8).with(20, 9), entry(9)), 0), 'directly behind its end mark').toBe(53)
    expect(findWholeEntry(joined(head(40), new Uint8Array(40).fill(1), entry(9)), 0), 'at its mark').toBe(-1)
  })

  it.each([
    ['another checksum', 7],
    ['the upper half of a checksum', 3],
    ['another content', 30],
    ['no end mark', 52],
  ])('does not take bytes with %s for an entry', (_, at) => {
    const changed = entry(9)
    changed[at]! ^= 1
    expect(findWholeEntry(joined(new Uint8Array(12).fill(0xff), changed), 0)).toBe(-1)
  })
})

describe('corruptionIn', () => {
  const ones = (length: number): Uint8Array => new Uint8Array(length).fill(1)

  const withLength = (bytes: Uint8Array, length: number): Uint8Array => {
    new DataView(bytes.buffer, bytes.byteOffset).setInt32(8, length)
    return bytes
  }

  it('finds none in an entry that a crash cut short', () => {
    for (const rest of [
      hexBytes('01'),
      head(40),
      head(-1),
      joined(head(40), ones(1)),
      joined(head(40), ones(40)),
      joined(head(0x4000_0000), ones(1)),
      // An end mark that no checksum precedes, and a checksum of fewer bytes than an entry has.
      joined(head(1000), ones(100).with(50, 0x42)),
      withLength(entry(1, 31), 1000),
    ])
      expect(corruptionIn(rest, 1000)).toBe(undefined)
  })

  it('finds a length that the checksum contradicts', () => {
    for (const length of [0, 39, 41, 0x7fff_ffff])
      expect(corruptionIn(withLength(joined(entry(1), ones(600)), length), 1000)).toBe(
        `Expected an entry of 40 bytes by its checksum, got a length of ${length}`,
      )
    expect(corruptionIn(withLength(entry(1, 32), 1000), 1000)).toBe(
      'Expected an entry of 32 bytes by its checksum, got a length of 1000',
    )
  })

  it('knows the length by the checksum only where an end mark follows', () => {
    const rest = withLength(joined(entry(1).with(52, 0x43), ones(600)), 39)
    expect(corruptionIn(rest, 1000)).toBe('Expected an entry')
  })

  it.each([-1, 0x4000_0001])('finds a length that no entry has (%i)', (length) => {
    expect(corruptionIn(joined(head(length), ones(1)), 1000)).toBe(
      `Expected the length of an entry, got ${length}`,
    )
  })

  it('finds an entry with its end mark that does not match its checksum', () => {
    for (const rest of [entry(1).with(20, 9), entry(1).with(3, 1)])
      expect(corruptionIn(rest, 1000)).toBe('Expected an entry that matches its checksum')
  })

  it('finds none in a head of zeros that ends with its sector', () => {
    for (const next of [1, 0x42])
      expect(corruptionIn(joined(new Uint8Array(12), ones(20).with(0, next)), 500)).toBe(undefined)
    expect(corruptionIn(joined(new Uint8Array(12), ones(20)), 499)).toBe('Expected an entry')
    expect(corruptionIn(joined(head(0), ones(20).with(0, 0x42)), 500)).toBe('Expected an entry')
  })

  it('finds an entry without a whole sector of zeros, which a torn write leaves, before its end', () => {
    const withZeros = (from: number, to: number): Uint8Array =>
      joined(head(2000), ones(2600)).fill(0, from, to)
    for (const [from, to, at, isTorn] of [
      [0, 0, 512, false],
      [512, 1024, 512, true],
      [512, 1024, 1024, true],
      [512, 1024, 513, false],
      [511, 1023, 513, true],
      [1023, 1535, 513, true],
      [512, 1023, 512, false],
      [513, 1024, 512, false],
      // The sector begins before the end of the entry, which is at 2012, or at it.
      [2011, 2523, 37, true],
      [2012, 2524, 36, false],
    ] as const)
      expect([from, at, corruptionIn(withZeros(from, to), at)]).toEqual([
        from,
        at,
        isTorn ? undefined : 'Expected an entry',
      ])
  })
})
