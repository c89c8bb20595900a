import { describe, expect, it } from 'vitest'
import { kindOf } from './kind-of.ts'

describe('what reasons have in common', () => {
  it.each([
    ['Refused 10.0.0.1: 60 connections', 'Refused #.#.#.#: # connections'],
    ['Closed 2001:db8::1.', 'Closed #'],
    ['Closed ::1: it is at 0xff', 'Closed # it is at #'],
    ['The user "a \\" b" of "c" is unknown', 'The user # of # is unknown'],
    ['The user "that is cut', 'The user #'],
    ['Closed: its face', 'Closed: its face'],
  ])('is in %s: %s', (reason, kind) => {
    expect(kindOf(reason)).toBe(kind)
  })

  it.each([
    ['hexadecimal digits', 'a'],
    ['hexadecimal digits with a colon here and there', `${'a'.repeat(1000)}: `],
    ['quotes without an end', '"\\'],
    ['colons', ':'],
  ])('is found at once in a long text of %s', (_, part) => {
    expect(typeof kindOf(part.repeat(1_000_000 / part.length))).toBe('string')
  })
})
