import { describe, expect, it } from 'vitest'
import { digestScheme, saslScheme } from './schemes.ts'

describe('an id of the scheme digest', () => {
  it.each([
    ['bob:hash', true],
    ['bob:hash::', true],
    [':hash', true],
    ['bob:', false],
    ['bob', false],
    ['bob:hash:more', false],
    ['::', false],
    ['', false],
  ])('may be %j: %s', (id, may) => {
    expect(digestScheme.isValid(id)).toBe(may)
  })

  it('matches itself alone', () => {
    expect(digestScheme.matches('bob:hash', 'bob:hash')).toBe(true)
    expect(digestScheme.matches('eve:hash', 'bob:hash')).toBe(false)
    expect(digestScheme.matches('super', 'bob:hash')).toBe(false)
  })
})

describe('an id of the scheme sasl', () => {
  it.each([
    ['bob', true],
    ['bob/host', true],
    ['bob@REALM', true],
    ['bob/host@REALM', true],
    ['/@', true],
    ['bob/a/b@REALM', false],
    ['bob@A@B', false],
    ['bob@REALM/x', false],
  ])('may be %j: %s', (id, may) => {
    expect(saslScheme.isValid(id)).toBe(may)
  })

  it('matches its user and the user super', () => {
    expect(saslScheme.matches('bob', 'bob')).toBe(true)
    expect(saslScheme.matches('super', 'bob')).toBe(true)
    expect(saslScheme.matches('eve', 'bob')).toBe(false)
    expect(saslScheme.matches('bob', 'super')).toBe(false)
  })
})
