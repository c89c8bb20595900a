import { expect, it } from 'vitest'
import { json } from './codecs.ts'

it('json refuses what JSON cannot hold instead of storing nothing', () => {
  expect(() => json().encode(undefined)).toThrow()
})
