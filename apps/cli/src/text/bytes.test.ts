import { expect, it } from 'vitest'
import { safe, safeLine } from './bytes.ts'

it.each([
  ['a bidirectional override', 'a\u202eb', 'a\\u202eb'],
  ['a bidirectional isolate', 'a\u2066b\u2069', 'a\\u2066b\\u2069'],
  ['a direction mark', '\u200e\u200f\u061c', '\\u200e\\u200f\\u061c'],
  ['a zero-width space', 'ad\u200bmin', 'ad\\u200bmin'],
  ['a byte order mark', '\ufeffx', '\\ufeffx'],
  ['a word joiner and a soft hyphen', '\u2060\u00ad', '\\u2060\\xad'],
  ['a line separator', 'a\u2028b', 'a\\u2028b'],
  ['a tag character', 'a\u{e0041}b', 'a\\u{e0041}b'],
  ['an escape sequence', '\u001b[2J\u009b', '\\x1b[2J\\x9b'],
])('safe escapes %s', (_, text, escaped) => {
  expect(safe(text)).toBe(escaped)
})

it('safe keeps visible text of every script, newlines and tabs', () => {
  const text = 'Grüße, 漢字, עברית, \u{1f600}\n\t'
  expect(safe(text)).toBe(text)
  expect(safeLine('a\n\tb')).toBe('a\\n\\tb')
})
