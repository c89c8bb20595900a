import { expect, it } from 'vitest'
import { decodeName, encodeName } from './name-codec.ts'

it('names of any text go into one level of a path and come back', () => {
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

it('plain names stay as they are', () => {
  expect(encodeName('worker-7.example:2181')).toBe('worker-7.example:2181')
})

it('what is no such name is told', () => {
  expect(['%4', '%zz', 'ä', '%41', '%FF'].map(decodeName)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})
