import { describe, expect, test } from 'vitest'
import { defaults, rowOf, settingNames } from './defaults.ts'
import {
  bool,
  oneOf,
  duration,
  list,
  pattern,
  port,
  showDuration,
  showSize,
  size,
  text,
  integer,
  type ValueType,
} from './value-types.ts'

const read = <T>(kind: ValueType<T>, given: string) => kind.read(given) ?? `expected ${kind.expected}`

describe('parsing of values', () => {
  test.each([
    ['12', 12],
    ['+12', 12],
    ['0', 'expected a whole number from 1 to 20'],
    ['21', 'expected a whole number from 1 to 20'],
    ['1.5', 'expected a whole number from 1 to 20'],
    ['1e1', 'expected a whole number from 1 to 20'],
    ['0x10', 'expected a whole number from 1 to 20'],
    ['12 # dozen', 'expected a whole number from 1 to 20'],
    ['', 'expected a whole number from 1 to 20'],
  ])('a whole number from 1 to 20 reads %j as %j', (given, expected) => {
    expect(read(integer(1, 20), given)).toBe(expected)
  })

  test('a port is from 0 to 65535', () => {
    expect(read(port(), '0')).toBe(0)
    expect(read(port(), '65535')).toBe(65_535)
    expect(read(port(), '65536')).toContain('expected a TCP port')
  })

  test.each([
    ['2000', 2000],
    ['2000ms', 2000],
    ['2 s', 2000],
    ['5m', 300_000],
    ['1H', 3_600_000],
    ['1d', 86_400_000],
  ])('a time in milliseconds reads %j as %j', (given, expected) => {
    expect(read(duration('ms'), given)).toBe(expected)
  })

  test('a time without suffix is in the unit of its key', () => {
    expect(read(duration('h'), '24')).toBe(86_400_000)
    expect(read(duration('h'), '30m')).toBe(1_800_000)
  })

  test('a negative time or size means off only for the keys for which it does in ZooKeeper', () => {
    expect(read(duration('ms'), '-1')).toContain('expected a time')
    expect(read(duration('ms', { negativeIsOff: true }), '-1')).toBe(0)
    expect(read(size('KB', { negativeIsOff: true }), '-1')).toBe(0)
  })

  test.each([
    ['1048575', 1_048_575],
    ['0xfffff', 1_048_575],
    ['4M', 4_194_304],
    ['4 MiB', 4_194_304],
    ['1k', 1024],
    ['7b', 7],
  ])('a size in bytes reads %j as %j', (given, expected) => {
    expect(read(size('B'), given)).toBe(expected)
  })

  test('a size without suffix is in the unit of its key', () => {
    expect(read(size('KB'), '65536')).toBe(67_108_864)
    expect(read(size('KB'), '64M')).toBe(67_108_864)
  })

  test.each(['true', 'YES', 'on'])('%j is true', (given) => expect(read(bool(), given)).toBe(true))
  test.each(['false', 'No', 'off'])('%j is false', (given) => expect(read(bool(), given)).toBe(false))

  test('a boolean that ZooKeeper reads differently has a note', () => {
    expect(bool('property').apacheReading?.('yes')).toBe('ZooKeeper reads this text as false')
    expect(bool('property').apacheReading?.('TRUE')).toBeUndefined()
    expect(bool('named').apacheReading?.('on')).toBe('ZooKeeper refuses all but true and false here')
  })

  test.each([
    ['yes-default', 'no', false, undefined],
    ['yes-default', 'yes', true, undefined],
    ['yes-default', 'true', true, undefined],
    ['yes-default', 'false', true, 'ZooKeeper too takes only no as no here. Write yes or no'],
    ['yes-default', 'No', true, 'ZooKeeper too takes only no as no here. Write yes or no'],
    ['no-default', 'yes', true, undefined],
    ['no-default', 'false', false, undefined],
    ['no-default', 'true', false, 'ZooKeeper too takes only yes as yes here. Write yes or no'],
    ['no-default', 'ON', false, 'ZooKeeper too takes only yes as yes here. Write yes or no'],
  ] as const)('a key that ZooKeeper reads as %s reads %j as %j', (native, given, expected, note) => {
    expect(read(bool(native), given)).toBe(expected)
    expect(bool(native).apacheReading?.(given)).toBe(note)
  })

  test('a key that ZooKeeper takes as yes or no rejects other words', () => {
    expect(read(bool('no-default'), 'maybe')).toContain('expected yes or no')
  })

  test('a list drops blanks and empty parts', () => {
    expect(read(list('names'), ' ruok, ,srvr,')).toEqual(['ruok', 'srvr'])
  })

  test('oneOf accepts its words in any case, and an empty text as the first', () => {
    expect(read(oneOf('none', 'gz'), 'GZ')).toBe('gz')
    expect(read(oneOf('none', 'gz'), '""')).toBe('none')
    expect(read(oneOf('none', 'gz'), 'zip')).toBe('expected one of none, gz')
  })

  test('text must not be empty, and a pattern must match', () => {
    expect(read(text('a folder'), ' ')).toBe('expected a folder')
    expect(read(pattern(/^a+$/, 'some a'), 'ab')).toBe('expected some a')
  })

  test('times and sizes are formatted in the largest unit that divides them', () => {
    expect([0, 1500, 2000, 60_000, 3_600_000].map(showDuration)).toEqual([
      '0',
      '1500 ms',
      '2 s',
      '1 min',
      '1 h',
    ])
    expect([0, 1_048_575, 1_048_576].map(showSize)).toEqual(['0', '1048575 bytes', '1 MiB'])
  })
})

test('every default is a value that a program can pass', () => {
  const settings = defaults()
  const refused = settingNames.filter((name) => !rowOf(name).type.accepts(settings[name]))
  expect(refused).toEqual([])
})
