import { expect, it } from 'vitest'
import { json } from './codecs.ts'

it('json rejects values that JSON cannot represent instead of storing nothing', () => {
  expect(() => json().encode(undefined)).toThrow()
})
