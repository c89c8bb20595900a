import { describe, expect, it } from 'vitest'
import { canonicalIp, ipMatches, isIpExpression, isLoopback, parseIp } from './index.ts'

describe('an address', () => {
  it.each([
    ['1.2.3.4', [1, 2, 3, 4]],
    ['+01.002.255.0', [1, 2, 255, 0]],
    ['1:2:3:4:5:6:7:ffff', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 255, 255]],
    ['1:2:3::6:7:8', [0, 1, 0, 2, 0, 3, 0, 0, 0, 0, 0, 6, 0, 7, 0, 8]],
    ['1:2:3:4:5:6:7::', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]],
    ['::', Array.from({ length: 16 }, () => 0)],
  ])('%s has these bytes', (text, bytes) => {
    expect(parseIp(text)).toEqual(bytes)
  })

  it.each([
    '-1.2.3.4',
    '1.2.3.4 ',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4::5:6:7:8',
    '1:2:3:4::5:6:7:8::',
    'g::1',
    '1::g',
  ])('%j is none', (text) => {
    expect(parseIp(text)).toBeUndefined()
  })

  it.each([
    ['::FFFF:10.200.100.254', '10.200.100.254'],
    ['1::ffff:10.0.0.1', '1::ffff:10.0.0.1'],
    ['::ffff:10.0.0.1.5', '::ffff:10.0.0.1.5'],
    ['a name', 'a name'],
  ])('%s is an identity as %s', (host, canonical) => {
    expect(canonicalIp(host)).toBe(canonical)
  })

  it.each([
    ['127.0.0.1', true],
    ['127.255.0.9', true],
    ['::1', true],
    ['::1%lo', true],
    ['0:0:0:0:0:0:0:1', true],
    ['0000:0000:0000:0000:0000:0000:0000:0001', true],
    ['10.0.127.1', false],
    ['10.127.', false],
    ['1::1', false],
    ['::11', false],
    ['::1:1', false],
    ['1.2.3.4%::1', false],
  ])('%s is of the machine itself: %s', (host, isOwn) => {
    expect(isLoopback(host)).toBe(isOwn)
  })
})

describe('the expression of an entry', () => {
  it.each(['255.255.255.255', '1.2.3.4/32', '1.2.3.4/0', '::/128'])('may be %s', (expression) => {
    expect(isIpExpression(expression)).toBe(true)
  })

  it.each(['1.2.3.4/8x', '1.2.3.4/x8', '1.2.3.4/0x8', '1.2.3.4/1e1', '1.2.3.4/33'])(
    'may not be %s',
    (expression) => {
      expect(isIpExpression(expression)).toBe(false)
    },
  )

  it('that cannot be parsed matches no address, and none matches what is no address', () => {
    expect(ipMatches('1.2.3.4', 'everywhere')).toBe(false)
    expect(ipMatches('a name', '0.0.0.0/0')).toBe(false)
  })
})
