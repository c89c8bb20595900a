import { describe, expect, it } from 'vitest'
import { JavaDouble, javaJson, LazyObject, type JsonValue } from './java-json.ts'

const written = (value: JsonValue): string => [...javaJson(value)].join('')

describe('JSON in the form of Apache ZooKeeper', () => {
  it('has two blanks a level for objects, arrays on one line with blanks inside, and no newline at its end', () => {
    expect(
      written({ a: [1, 2], b: { c: [{ d: true, e: null }, { f: 'g' }] }, left: undefined, empty: [{}, []] }),
    ).toBe(
      '{\n  "a" : [ 1, 2 ],\n  "b" : {\n    "c" : [ {\n      "d" : true,\n      "e" : null\n    }, {\n      "f" : "g"\n    } ]\n  },\n  "empty" : [ { }, [ ] ]\n}',
    )
    expect([written({}), written([]), written(new LazyObject([]))]).toEqual(['{ }', '[ ]', '{ }'])
  })

  it('has integers of any size as they are', () => {
    const ids = [-(2n ** 63n), 2n ** 53n + 1n, 72057701244272640n]
    expect(written([0, -1, 2 ** 53 - 1, ...ids])).toBe(
      '[ 0, -1, 9007199254740991, -9223372036854775808, 9007199254740993, 72057701244272640 ]',
    )
  })

  it('has doubles with one decimal at least and four at most, without an exponent', () => {
    const doubles = [0, 22, 0.25, 1 / 3, 13_431_392, 12_345_678.9, 0.00001]
    expect(written(doubles.map((value) => new JavaDouble(value)))).toBe(
      '[ 0.0, 22.0, 0.25, 0.3333, 13431392.0, 12345678.9, 0.0 ]',
    )
    expect(written(new JavaDouble(NaN))).toBe('"NaN"')
  })

  it('escapes quotes, backslashes and control characters of texts and names, and nothing else', () => {
    expect(written({ 'a"\\': 'b"\\\n\t\r\b\f\u0001/é\u2028€' })).toBe(
      '{\n  "a\\"\\\\" : "b\\"\\\\\\n\\t\\r\\b\\f\\u0001/é\u2028€"\n}',
    )
  })

  it('leaves out what a lazy object or a list has not made yet', () => {
    const lazy = new LazyObject([undefined, ['a', 1], undefined, ['b', [undefined, 2] as never]])
    expect(written(lazy)).toBe('{\n  "a" : 1,\n  "b" : [ 2 ]\n}')
  })
})
