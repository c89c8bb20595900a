import type { ACL } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { AclTable } from './index.ts'

const listOf = (user: number): ACL[] => [{ perms: 31, id: { scheme: 'digest', id: `u${user}:hash` } }]

it('a view has the lists of its start, whatever is added and released meanwhile', () => {
  const table = new AclTable()
  const ids = Array.from({ length: 100 }, (_, i) => table.retain(listOf(i)))
  const view = table.view()
  const lists = view.lists[Symbol.iterator]()
  expect(lists.next().value).toEqual([ids[0], listOf(0)])
  for (const id of ids) table.release(id)
  const revived = table.retain(listOf(7))
  table.retain(listOf(100))
  expect([revived, view.count, table.size]).toEqual([ids[7], 100, 2])
  const others = Array.from({ length: 99 }, () => lists.next().value)
  expect(others).toEqual(ids.slice(1).map((id, i) => [id, listOf(i + 1)]))
  expect(lists.next().done).toBe(true)
})

it('lists that only a view has kept are removed a few at a time after its end', () => {
  const table = new AclTable()
  const ids = Array.from({ length: 100 }, (_, i) => table.retain(listOf(i)))
  const [first, second] = [table.view(), table.view()]
  for (const id of ids) table.release(id)
  first.close()
  table.release(table.retain(listOf(100)))
  expect([table.size, table.entries().length]).toEqual([0, 101])
  second.close()
  table.retain(listOf(100))
  expect(table.entries().length).toBeGreaterThan(90)
  for (let i = 0; i < 100; i++) table.retain(listOf(100))
  expect(table.entries()).toHaveLength(1)
  expect(table.size).toBe(1)
})

it('the memory of lists is counted once for each, while they are used or kept', () => {
  const table = new AclTable()
  const long = [{ perms: 31, id: { scheme: 'digest', id: 'u'.repeat(1_000_000) } }]
  const ids = [table.retain(long), table.retain(long)]
  expect(table.bytes).toBeGreaterThan(2_000_000)
  expect(table.bytes).toBeLessThan(2_001_000)
  const view = table.view()
  for (const id of ids) table.release(id)
  expect(table.bytes).toBeGreaterThan(2_000_000)
  view.close()
  table.retain(listOf(1))
  expect(table.bytes).toBeLessThan(1000)
  table.load(1, long)
  table.load(1, listOf(2))
  table.purgeUnused()
  expect(table.bytes).toBeLessThan(1000)
})
