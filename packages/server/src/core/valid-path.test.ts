import { validatePath } from '@zabra/protocol'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isValidPath } from './valid-path.ts'

it('long paths are judged like short ones', () => {
  const part = fc.oneof(
    fc.constantFrom('/', '.', 'a', '\n', '\0'),
    fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
    fc
      .constantFrom(0x1f, 0x20, 0x7e, 0x7f, 0x9f, 0xa0, 0xd7ff, 0xd800, 0xf8ff, 0xf900, 0xffef, 0xfff0)
      .map((unit) => String.fromCharCode(unit)),
  )
  const end = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(end, fc.constantFrom('/', ''), (text, first) => {
      const isValid = validatePath(`${first}a${text}`) === undefined
      expect([isValidPath(`${first}a${text}`), isValidPath(`${first}${'a'.repeat(1100)}${text}`)]).toEqual([
        isValid,
        isValid,
      ])
    }),
    { numRuns: 5000 },
  )
})
