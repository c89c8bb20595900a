import { expect, it } from 'vitest'
import { createParser } from '../lock-queue/contenders.ts'
import { isAlone } from './upgrade.ts'

const parse = createParser(['__WRIT__'], ['__READ__'])
const read = (who: string, n: number): string => `${who}__READ__${String(n).padStart(10, '0')}`
const write = (who: string, n: number): string => `${who}__WRIT__${String(n).padStart(10, '0')}`
const own = { read: read('me', 5), write: write('me', 5) }
const both = [own.read, own.write]

it('a reader without others is alone', () => {
  expect(isAlone(both, own, parse)).toBe(true)
  expect(isAlone([...both, 'leader', 'foreign-0000000001'], own, parse)).toBe(true)
})

it('a reader with another reader before or behind it is not alone', () => {
  expect(isAlone([...both, read('x', 4)], own, parse)).toBe(false)
  expect(isAlone([...both, read('x', 6)], own, parse)).toBe(false)
})

it('readers behind a waiting writer do not count', () => {
  expect(isAlone([...both, write('w', 6), read('x', 7)], own, parse)).toBe(true)
  expect(isAlone([...both, read('x', 6), write('w', 7)], own, parse)).toBe(false)
})

it('two readers that upgrade at once see each other, in any order of their listings', () => {
  const other = { read: read('you', 6), write: write('you', 6) }
  const all = [...both, other.read, other.write]
  expect(isAlone(all, own, parse)).toBe(false)
  expect(isAlone(all, other, parse)).toBe(false)
  expect(isAlone([other.read, other.write, own.read], other, parse)).toBe(false)
})

it('a listing without the own znodes proves nothing', () => {
  expect(isAlone([own.read], own, parse)).toBe(false)
  expect(isAlone([own.write], own, parse)).toBe(false)
})
