// oxlint-disable-next-line no-restricted-imports -- the oracle of the pure checksums is the platform's
import { crc32 as zlibCrc32 } from 'node:zlib'
// oxlint-disable-next-line no-restricted-imports -- the oracle of the pure hash is the platform's
import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  adler32,
  crc32,
  crc32Text,
  digestId,
  ErrorCode,
  errors,
  hmacSha256,
  readText,
  validatePath,
  Writer,
} from './index.ts'
import { fromHex, toHex } from './testing/conversation.ts'

const read = (hex: string): string => readText(fromHex(hex), 0, fromHex(hex).length)

describe('text', () => {
  it.each([
    ['eda0bdedb880', '\ufffd\ufffd'],
    ['eda0', '\ufffd'],
    ['e282', '\ufffd'],
    ['f09f98', '\ufffd'],
    ['e28241', '\ufffdA'],
    ['c080', '\ufffd'.repeat(2)],
    ['8080', '\ufffd'.repeat(2)],
    ['e08080', '\ufffd'.repeat(3)],
    ['f0808080', '\ufffd'.repeat(4)],
    ['f4908080', '\ufffd'.repeat(4)],
    ['f5808080', '\ufffd'.repeat(4)],
    ['efbbbf2f78', '\ufeff/x'],
  ])('reads %s as the JVM does', (hex, text) => {
    expect(read(hex)).toBe(text)
  })
  it('reads valid UTF-8 like TextDecoder', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(read(toHex(new TextEncoder().encode(text)))).toBe(text)
      }),
      { seed: 3 },
    )
  })
  it('writes a character beyond U+FFFF as two surrogates of three bytes each', () => {
    const writer = new Writer()
    writer.string('\u{1f600}')
    expect(toHex(writer.take())).toBe('00000006eda0bdedb880')
  })
})

describe('checksums and hashes', () => {
  it('equal those of Node', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 9000 }), fc.nat(9000), (bytes, cut) => {
        expect(crc32(bytes, cut, bytes.length, crc32(bytes, 0, Math.min(cut, bytes.length)))).toBe(
          zlibCrc32(bytes),
        )
        let [low, high] = [1, 0]
        for (const byte of bytes) {
          low = (low + byte) % 65521
          high = (high + low) % 65521
        }
        expect(adler32(bytes)).toBe(high * 65536 + low)
        const hash = createHash('sha1').update('u:').update(toHex(bytes)).digest('base64')
        expect(digestId(`u:${toHex(bytes)}`)).toBe(`u:${hash}`)
      }),
      { seed: 4, numRuns: 50 },
    )
  })
  it('hmacSha256 equals that of Node', () => {
    const bytes = fc.uint8Array({ maxLength: 300 })
    fc.assert(
      fc.property(bytes, bytes, (key, message) => {
        expect(toHex(hmacSha256(key, message))).toBe(createHmac('sha256', key).update(message).digest('hex'))
      }),
      { seed: 4, numRuns: 100 },
    )
  })
  it('crc32Text of a text equals crc32 of its encoding', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string())
    fc.assert(
      fc.property(text, fc.nat(2 ** 32 - 1), fc.constantFrom(0, 0, 0, 1100), (end, previous, before) => {
        const whole = 'x'.repeat(before) + end
        const writer = new Writer()
        writer.string(whole)
        const bytes = writer.take()
        expect(crc32Text(whole, 0, previous)).toBe(crc32(bytes, 4, bytes.length, previous))
        const ascii = whole.replaceAll(/[^ -~]/g, '-')
        expect(crc32Text(`/a${ascii}`, 2, crc32Text('/a'))).toBe(crc32Text(`/a${ascii}`))
      }),
      { seed: 5, numRuns: 200 },
    )
  })
  it('adler32 of the largest bytes does not overflow', () => {
    const most = new Uint8Array(20_000).fill(255)
    let [low, high] = [1, 0]
    for (const byte of most) {
      low = (low + byte) % 65521
      high = (high + low) % 65521
    }
    expect(adler32(most)).toBe(high * 65536 + low)
    expect(adler32(most, 0, 3800, 65520 * 65536 + 65520)).toBe(
      adler32(most, 1900, 3800, adler32(most, 0, 1900, 65520 * 65536 + 65520)),
    )
  })
  it('adler32 of long ranges at any offset equals a loop over bytes', () => {
    for (const offset of [0, 1, 2, 3])
      for (const filling of ['most', 'mixed'] as const) {
        const bytes = new Uint8Array(new ArrayBuffer(9000), offset, 8000)
        bytes.forEach((_, i) => (bytes[i] = filling === 'most' ? 255 : (i * 37 + (i >> 5)) & 255))
        for (const start of [0, 1, 2, 3, 101])
          for (const length of [511, 512, 513, 514, 515, 600, 4095, 7899]) {
            let [low, high] = [65520, 65520]
            for (let i = start; i < start + length; i++) {
              low = (low + bytes[i]!) % 65521
              high = (high + low) % 65521
            }
            expect(adler32(bytes, start, start + length, 65520 * 65536 + 65520)).toBe(high * 65536 + low)
          }
      }
  })
  it('digestId equals the id that an Apache server stores', () => {
    expect(digestId('bob:pw')).toBe('bob:ikIaKsbtGweaHnb/jKn7OHqbunM=')
  })
})

describe('validatePath', () => {
  it.each(['/', '/a b', '/...', '/.a', '/a.', '/\u00a0', '/\uf900', '/\uffef'])('accepts %j', (path) => {
    expect(validatePath(path)).toBeUndefined()
  })
  it.each([
    null,
    '',
    'a',
    '/a/',
    '//',
    '/a//b',
    '/.',
    '/..',
    '/a/../b',
    '/\0',
    '/\u001f',
    '/\u007f',
    '/\u009f',
    '/\ud800',
    '/\uf8ff',
    '/\ufff0',
    '/\uffff',
  ])('says why %j is refused', (path) => {
    expect(validatePath(path)).toMatch(/^Expected /)
  })
})

it('errors has every error code once', () => {
  expect([...errors.keys()]).toEqual(Object.values(ErrorCode))
})
