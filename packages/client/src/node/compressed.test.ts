import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { json, utf8 } from '../codecs.ts'
import { ManualWorld } from '../testing/manual-world.ts'
import { compressed } from './compressed.ts'

describe('the gzip codec', () => {
  it('compresses on encode and restores the value on decode', () => {
    const codec = compressed(json<string[]>())
    const value = Array.from({ length: 1000 }, (_, i) => `host-${i}`)
    const data = codec.encode(value)
    expect(data.length).toBeLessThan(json().encode(value).length / 2)
    expect(codec.decode(data)).toEqual(value)
    expect(data.constructor).toBe(Uint8Array)
    expect(codec.decode(compressed(json()).encode([]))).toEqual([])
  })

  it("decodes data written by any gzip, such as Curator's", () => {
    expect(compressed(utf8).decode(new Uint8Array(gzipSync('hello', { level: 9 })))).toBe('hello')
  })

  it.each([
    ['nothing', new Uint8Array(0)],
    ['plain text', utf8.encode('{"a":1}')],
    ['a truncated file', new Uint8Array(gzipSync('hello hello hello')).subarray(0, 14)],
    ['a wrong checksum', new Uint8Array(gzipSync('hello')).map((byte, i) => (i === 16 ? byte ^ 1 : byte))],
  ])('rejects %s and says what it received', (_what, data) => {
    expect(() => compressed(utf8).decode(data)).toThrow(
      new RegExp(`^Expected gzip data, got ${data.length} other bytes`),
    )
  })

  it('rejects data that decompresses to more than maxBytes', () => {
    const bomb = new Uint8Array(gzipSync(new Uint8Array(10_000_000)))
    expect(bomb.length).toBeLessThan(20_000)
    expect(() => compressed(utf8, { maxBytes: 1000 }).decode(bomb)).toThrow(
      'Expected data that decompresses to at most 1000 bytes, got more',
    )
    expect(() => compressed(utf8, { maxBytes: 0 })).toThrow(
      'Expected option maxBytes to be whole bytes from 1',
    )
  })

  it('works in a typed client', async () => {
    const world = await ManualWorld.start()
    const values = (await world.client()).withCodec(compressed(json<{ a: number }>()))
    await world.outcome(values.create('/a', { a: 1 }))
    expect((await world.outcome(values.get('/a'))).value).toEqual({ a: 1 })
    await world.end()
  })
})
