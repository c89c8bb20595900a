import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compressSnappy, decompressSnappy, SnappyCompressor, SnappyDecompressor } from './snappy.ts'
import { hexBytes } from './testing/log-fixture.ts'

const HEADER = '82534e41 50505900 00000001 00000001'
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const repeated = (text: string, length: number): string => text.repeat(length).slice(0, length)
/** Returns bytes in which no four occur twice. */
const mixed = (length: number): Uint8Array => {
  const bytes = new Uint8Array(length)
  const view = new DataView(bytes.buffer)
  for (let at = 0; at + 4 <= length; at += 4) view.setUint32(at, Math.imul(at + 1, 0x9e37_79b1))
  return bytes
}
const join = (...parts: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => [...part]))
/** The length of a block as a variable-length number. */
const varint = (value: number): string => {
  const digits = []
  for (let rest = value; ; rest >>>= 7) {
    digits.push(rest < 0x80 ? rest : (rest & 0x7f) | 0x80)
    if (rest < 0x80) return hexOf(Uint8Array.from(digits))
  }
}

describe('decompressSnappy', () => {
  it('returns what compressSnappy was given, for any bytes', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 3000, max: 5 }),
        fc.uint8Array({ maxLength: 80 }),
        (few, any) => {
          const bytes = join(few, any, few)
          const packed = compressSnappy(bytes)
          expect(Buffer.compare(decompressSnappy(packed), bytes)).toBe(0)
          expect(packed.length).toBeLessThanOrEqual(32 + bytes.length + bytes.length / 6)
        },
      ),
      { seed: 3 },
    )
  })

  it.each([
    ['nothing', '00', ''],
    ['a literal', '03 08 616263', 'abc'],
    ['two literals', '03 00 61 04 6263', 'abc'],
    ['a copy with an offset of 11 bits', '08 0c 61626364 01 04', 'abcdabcd'],
    ['the longest of these copies', '0f 0c 61626364 1d 04', repeated('abcd', 15)],
    ['a copy with an offset of 2 bytes', '05 00 61 0e 0100', 'aaaaa'],
    ['a copy with an offset of 4 bytes', '05 00 61 0f 01000000', 'aaaaa'],
    ['copies that overlap their source', '07 04 6162 12 0200', 'abababa'],
  ])('decodes %s', (_, block, text) => {
    expect(textOf(decompressSnappy(hexBytes(block)))).toBe(text)
  })

  it.each([1, 2, 3, 4])('decodes a literal whose length has %i bytes of its own', (size) => {
    const data = mixed(size === 1 ? 61 : 1000)
    const length = new Uint8Array(size)
    length.set(Uint8Array.of((data.length - 1) & 0xff, (data.length - 1) >> 8).subarray(0, size))
    const head = hexBytes(`${varint(data.length)} ${hexOf(Uint8Array.of((59 + size) << 2))} ${hexOf(length)}`)
    expect(hexOf(decompressSnappy(join(head, data)))).toBe(hexOf(data))
    for (const end of [head.length - 1, head.length + data.length - 1])
      expect(() => decompressSnappy(join(head, data).subarray(0, end))).toThrow(RangeError)
  })

  it('decodes far copies, by offsets of any size', () => {
    const data = mixed(70_000)
    const far = (length: number, tag: string): string =>
      hexOf(
        decompressSnappy(join(hexBytes(varint(70_000 + length)), hexBytes('f8 6f1101'), data, hexBytes(tag))),
      )
    const copied = (length: number, offset: number): string =>
      hexOf(join(data, data.subarray(70_000 - offset, 70_000 - offset + length)))
    expect(far(4, 'e1 ff')).toBe(copied(4, 2047))
    expect(far(11, '3d 02')).toBe(copied(11, 258))
    expect(far(64, 'fe ffff')).toBe(copied(64, 65_535))
    expect(far(2, '07 70110100')).toBe(copied(2, 70_000))
  })

  it.each([
    ['no length', '', 'Expected the decompressed length of a Snappy block'],
    ['an unfinished length', '80', 'Expected the decompressed length'],
    ['a length of six bytes', '8080808080 00', 'Expected the decompressed length'],
    ['a length above 64 MiB', '81808020', 'Expected a Snappy block of at most 67108864 bytes, got 67108865'],
    ['a length of five bytes', '8080808001', 'at most 67108864 bytes, got 268435456'],
    ['too few bytes', '04 08 616263', 'Expected 4 bytes in a Snappy block, got 3'],
    ['a literal that is cut off', '03 08 6162', 'Expected a literal inside its Snappy block'],
    ['a literal that is too long', '02 08 616263', 'Expected a literal inside its Snappy block'],
    ['a copy from itself', '05 00 61 0e 0000', 'Expected a copy inside its Snappy block'],
    ['a copy from before the block', '05 00 61 0e 0200', 'Expected a copy inside its Snappy block'],
    ['a copy that is too long', '04 00 61 0e 0100', 'Expected a copy inside its Snappy block'],
    ['a copy of 11 bits that is cut off', '05 00 61 01', 'Expected more bytes in a Snappy block'],
    ['a copy of 2 bytes that is cut off', '05 00 61 0e 01', 'Expected more bytes in a Snappy block'],
    ['a copy of 4 bytes that is cut off', '05 00 61 0f 010000', 'Expected more bytes in a Snappy block'],
    ['a length of a literal that is cut off', '05 f4 01', 'Expected more bytes in a Snappy block'],
  ])('refuses %s', (_, block, message) => {
    expect(() => decompressSnappy(hexBytes(block))).toThrow(message)
    expect(() => decompressSnappy(hexBytes(block))).toThrow(RangeError)
  })

  it('accepts a block of 64 MiB', () => {
    expect(() => decompressSnappy(hexBytes('80808020'))).toThrow(
      'Expected 67108864 bytes in a Snappy block, got 0',
    )
  })
})

describe('compressSnappy', () => {
  it.each([
    ['', '00'],
    ['abc', '03 08 616263'],
    ['aaaa', '04 0c 61616161'],
    ['aaaaa', '05 00 61 0e 0100'],
    ['abcdXabcd', '09 10 6162636458 0e 0500'],
    ['abcdXabceY', '0a 24 61626364586162636559'],
    ['abcdXabcdefabcdef', '11 10 6162636458 0e 0500 04 6566 16 0600'],
    [repeated('a', 64), '40 00 61 fa 0100'],
    [repeated('a', 65), '41 00 61 fe 0100'],
    [repeated('a', 66), '42 00 61 fe 0100 00 61'],
    [repeated('a', 100), '64 00 61 fe 0100 8a 4000'],
  ])('finds what %j repeats', (text, block) => {
    expect(hexOf(compressSnappy(bytesOf(text)))).toBe(block.replaceAll(' ', ''))
  })

  it.each([
    [60, 'ec'],
    [61, 'f03c'],
    [128, 'f07f'],
    [256, 'f0ff'],
    [257, 'f40001'],
    [20_000, 'f41f4e'],
    [32_768, 'f4ff7f'],
  ])('writes %i bytes without a repetition as one literal', (length, tag) => {
    const data = mixed(32_768).subarray(0, length)
    expect(hexOf(compressSnappy(data))).toBe(`${varint(length)}${tag}${hexOf(data)}`)
  })

  it.each([
    [0, '1ef87f'],
    [256, '1ef87e'],
  ])('refers from the end of the largest block to byte %i', (first, copy) => {
    const data = new Uint8Array(32_768)
    for (const at of [first, 32_760]) data.set([1, 2, 3, 4, 5, 6, 7, 8], at)
    expect(hexOf(compressSnappy(data)).slice(-6)).toBe(copy)
  })
})

describe('a stream of snappy-java', () => {
  const stream = async (parts: readonly Uint8Array[]): Promise<Uint8Array> => {
    const compressor = new SnappyCompressor()
    const out = []
    for (const part of parts) out.push(await compressor.write(part))
    return join(...out, await compressor.end())
  }

  it('has a header, and blocks of at most 32 KiB with their lengths', async () => {
    expect(hexOf(await stream([]))).toBe('')
    expect(hexOf(await stream([new Uint8Array(0)]))).toBe(HEADER.replaceAll(' ', ''))
    const block = '00000005 03 08 616263'
    const two = await stream([bytesOf('abc'), bytesOf('abc')])
    expect(hexOf(two)).toBe(`${HEADER}${block}${block}`.replaceAll(' ', ''))
    const data = mixed(70_000)
    const blocks = [0, 32_768, 65_536].map((at) => compressSnappy(data.subarray(at, at + 32_768)))
    const lengths = blocks.map(({ length }) => Uint8Array.of(0, 0, length >> 8, length & 255))
    const packed = join(hexBytes(HEADER), ...blocks.flatMap((one, at) => [lengths[at]!, one]))
    expect(Buffer.compare(await stream([data]), packed)).toBe(0)
  })

  it.each([1, 3, 16, 17, 20, 21, 1000])('is decompressed in parts of %i bytes', async (size) => {
    const data = mixed(3000)
    const packed = await stream([data.subarray(0, 1000), data.subarray(1000), bytesOf('end')])
    const decompressor = new SnappyDecompressor()
    const out = []
    for (let at = 0; at < packed.length; at += size)
      out.push(await decompressor.write(packed.subarray(at, at + size)))
    expect(await decompressor.end()).toHaveLength(0)
    expect(hexOf(join(...out))).toBe(hexOf(join(data, bytesOf('end'))))
  })

  it.each([
    ['another header', HEADER.replace('82', '83'), 'Expected the header of a snappy-java stream'],
    ['another end of its magic', HEADER.replace('59', '5a'), 'Expected the header of a snappy-java stream'],
    ['a block without bytes', `${HEADER} 00000000`, 'Expected the length of a Snappy block, got 0'],
    ['a block of a negative length', `${HEADER} ffffffff`, 'Expected the length of a Snappy block, got -1'],
    ['a block above 64 MiB', `${HEADER} 04000001`, 'Expected the length of a Snappy block, got 67108865'],
  ])('with %s is refused', async (_, bytes, message) => {
    await expect(new SnappyDecompressor().write(hexBytes(bytes))).rejects.toThrow(message)
    await expect(new SnappyDecompressor().write(hexBytes(bytes))).rejects.toThrow(RangeError)
  })

  it('with other versions in its header is read', async () => {
    const bytes = hexBytes(`${HEADER.replaceAll('01', '02')} 00000005 03 08 616263`)
    expect(textOf(await new SnappyDecompressor().write(bytes))).toBe('abc')
  })

  it.each(['82', `${HEADER} 00`, `${HEADER} 04000000 01`, `${HEADER} 00000005 03 08 6162`])(
    'that ends as %s does is refused at its end',
    async (bytes) => {
      const decompressor = new SnappyDecompressor()
      expect(await decompressor.write(hexBytes(bytes))).toHaveLength(0)
      await expect(decompressor.end()).rejects.toThrow('Expected the rest of a Snappy block')
    },
  )
})
