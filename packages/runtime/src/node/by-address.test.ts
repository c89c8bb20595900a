import { expect, it } from 'vitest'
import { ByAddress } from './by-address.ts'

it('members are grouped by address, or network of IPv6, and keep their order', () => {
  const groups = new ByAddress<number>()
  expect([...groups.largest()]).toEqual([])
  groups.add('10.0.0.1', 1)
  groups.add('2001:db8::1', 2)
  groups.add('2001:db8::2', 3)
  expect([...groups.largest()]).toEqual([2, 3])
  groups.add('2001:db8::1', 2)
  expect([...groups.largest()]).toEqual([3, 2])
  groups.delete('2001:db8::2', 3)
  expect([...groups.largest()]).toEqual([1])
  expect(groups.countOf('::ffff:10.0.0.1')).toBe(1)
  groups.delete('10.0.0.1', 1)
  groups.delete('10.0.0.1', 1)
  expect([groups.countOf('10.0.0.1'), ...groups.largest()]).toEqual([0, 2])
})
