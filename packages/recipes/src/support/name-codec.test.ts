import { expect, it } from 'vitest'
import { decodeName, encodeName } from './name-codec.ts'

it('names of any text round-trip as one path level', () => {
  const texts = [
    '',
    '.',
    '..',
    'a.b',
    '/',
    'a/b',
    '%',
    '100%',
    'ä',
    '😀',
    '\u0000',
    ' ',
    'x'.repeat(100),
    '...',
  ]
  for (const text of texts) {
    const name = encodeName(text)
    expect(name).toMatch(/^[\x20-\x7e]+$/)
    expect(name).not.toMatch(/^\.{1,2}$|\//)
    expect(decodeName(name)).toBe(text)
  }
})

it('plain names stay unchanged', () => {
  expect(encodeName('worker-7.example:2181')).toBe('worker-7.example:2181')
})

it('invalid names decode to undefined', () => {
  expect(['%4', '%zz', 'ä', '%41', '%FF'].map(decodeName)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})
