import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProperties } from './properties.ts'

const pairs = (text: string) => parseProperties(text).properties.map(({ key, value }) => [key, value])

describe('parseProperties', () => {
  test('takes time in proportion to a text of backslashes, or of continued lines', () => {
    const backslashes = '\\'.repeat(2 ** 19)
    expect(pairs(`a=${backslashes}b`)).toEqual([['a', `${backslashes.slice(2 ** 18)}b`]])
    expect(pairs('a\\\n'.repeat(2 ** 17))).toEqual([['a'.repeat(2 ** 17), '']])
  })

  test.each([
    ['an equals sign', 'a=b', [['a', 'b']]],
    ['a colon', 'a: b', [['a', 'b']]],
    ['a blank', 'a b', [['a', 'b']]],
    ['blanks around the separator', '  a \t= b', [['a', 'b']]],
    ['a second separator belongs to the value', 'server.1=h:1:2', [['server.1', 'h:1:2']]],
    ['an escaped separator belongs to the key', String.raw`a\=b\:c=d`, [['a=b:c', 'd']]],
    ['a key alone', 'a', [['a', '']]],
    ['trailing blanks are dropped', 'a=b \t ', [['a', 'b']]],
    ['comments and empty lines are skipped', '# a=1\n ! b=2\n\n\t\nc=3', [['c', '3']]],
    ['a comment after a value is part of it', 'a=1 # one', [['a', '1 # one']]],
    ['a backslash at the end continues in the next line', 'a=b\\\n    c', [['a', 'bc']]],
    [
      'two backslashes at the end do not',
      'a=b\\\\\nc=d',
      [
        ['a', 'b\\'],
        ['c', 'd'],
      ],
    ],
    ['a continuation may look like a comment', 'a=b\\\n#c', [['a', 'b#c']]],
    ['a backslash alone on a line joins nothing', '\\\n#c\na=b', [['a', 'b']]],
    ['a comment is not continued', '# a\\\nb=c', [['b', 'c']]],
    ['a continuation may end the file', 'a=b\\', [['a', 'b']]],
    ['escapes', String.raw`a=x\ty\u0041\q`, [['a', 'x\tyAq']]],
    [
      'every kind of line end',
      'a=1\r\nb=2\rc=3',
      [
        ['a', '1'],
        ['b', '2'],
        ['c', '3'],
      ],
    ],
    ['a byte order mark', '\uFEFFa=1', [['a', '1']]],
    [
      'a repeated key is kept twice',
      'a=1\na=2',
      [
        ['a', '1'],
        ['a', '2'],
      ],
    ],
  ])('%s', (_, text, expected) => {
    expect(pairs(text)).toEqual(expected)
  })

  test('the line of an entry is its first one', () => {
    expect(parseProperties('#\n\na=1\\\n2\nb=3').properties.map(({ line }) => line)).toEqual([3, 5])
  })

  test('an invalid \\u escape is reported with its line, and the other entries are returned', () => {
    const { properties, unreadable } = parseProperties(String.raw`a=\u12
b=1`)
    expect(unreadable).toEqual([{ line: 1, reason: 'expected four hexadecimal digits after \\u' }])
    expect(properties).toMatchObject([{ key: 'b', value: '1' }])
  })

  test('a Windows path with single backslashes is flagged', () => {
    expect(parseProperties(String.raw`a=C:\data\zk`).properties[0]).toMatchObject({
      value: 'C:datazk',
      hasLostBackslash: true,
    })
    expect(parseProperties(String.raw`a=C:\\data\\zk`).properties[0]).toMatchObject({
      value: 'C:\\data\\zk',
      hasLostBackslash: false,
    })
  })

  test('any escaped text is decoded to itself', () => {
    const word = fc.string({ unit: 'binary' }).map((text) => text.trim())
    const escape = (text: string) =>
      text.replace(/[^]/g, (c) =>
        /[\w.]/.test(c) ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
    fc.assert(
      fc.property(
        word.filter((key) => key !== ''),
        word,
        (key, value) => {
          expect(pairs(`${escape(key)}=${escape(value)}`)).toEqual([[key, value]])
        },
      ),
    )
  })
})
