import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compressSnappy, decompressSnappy } from './snappy.ts'

it('decompressSnappy returns what compressSnappy was given, for any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3000, max: 5 }), (bytes) => {
      expect(decompressSnappy(compressSnappy(bytes))).toEqual(bytes)
    }),
    { seed: 3 },
  )
})
