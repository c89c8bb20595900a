import { OPEN_ACL_UNSAFE, type ACL } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { AclTable, OPEN_ACL_ID } from './index.ts'

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

it('an id that a snapshot has twice is that of the later list alone', () => {
  const table = new AclTable()
  table.load(1, listOf(1))
  table.load(1, listOf(2))
  const id = table.retain(listOf(1))
  expect([id, table.get(id), table.idOf(listOf(2))]).toEqual([2, listOf(1), 1])
  table.purgeUnused()
  expect([table.idOf(listOf(2)), table.entries()]).toEqual([undefined, [[2, listOf(1)]]])
})

it('equal lists have one id, and each use of it is released', () => {
  const table = new AclTable()
  const id = table.retain(listOf(1))
  expect([table.retain([...listOf(1)]), table.idOf(listOf(1)), table.size]).toEqual([id, id, 1])
  expect([table.retainId(id, 2), table.retainId(99)]).toEqual([true, false])
  for (let uses = 4; uses > 1; uses--) table.release(id)
  expect(table.get(id)).toEqual(listOf(1))
  table.release(id)
  expect([table.idOf(listOf(1)), table.size, table.bytes]).toEqual([undefined, 0, 0])
  expect(() => table.get(id)).toThrow(`Expected the number of a known access control list, got ${id}`)
  // A list that is gone stays so.
  table.release(id)
  table.releaseDuringLoad(id)
  expect(table.retain(listOf(1))).toBe(id + 1)
})

it('lists are equal only where every entry is', () => {
  const table = new AclTable()
  const entry = (perms: number, scheme: string | null, id: string | null): ACL => ({
    perms,
    id: { scheme, id },
  })
  const lists = [
    [],
    [entry(1, 'a', 'b')],
    [entry(2, 'a', 'b')],
    [entry(1, 'a', '1:b')],
    [entry(1, 'a', null)],
    [entry(1, null, null)],
    [entry(1, 'a', '-')],
    [entry(1, 'a', 'b|2|1:a|1:b')],
    [entry(1, 'a', 'b'), entry(2, 'a', 'b')],
  ]
  const ids = lists.map((list) => table.retain(list))
  expect(new Set(ids).size).toBe(lists.length)
  expect(ids.map((id) => table.get(id))).toEqual(lists)
  expect(table.longest).toBe(2)
})

it('the open list is one object, whatever table it is stored in', () => {
  const table = new AclTable()
  expect([table.get(OPEN_ACL_ID), table.retainId(OPEN_ACL_ID), table.size]).toEqual([
    OPEN_ACL_UNSAFE,
    true,
    0,
  ])
  const id = table.retain(OPEN_ACL_UNSAFE)
  expect([table.retain(OPEN_ACL_UNSAFE), table.get(id)]).toEqual([id, OPEN_ACL_UNSAFE])
  expect(table.get(id)).toBe(OPEN_ACL_UNSAFE)
  table.release(id)
  table.release(id)
  expect(table.size).toBe(0)
  const again = table.retain(OPEN_ACL_UNSAFE)
  expect(table.get(again)).toBe(OPEN_ACL_UNSAFE)
  // A view keeps it after its last use, and it has the same id when it is used again.
  const view = table.view()
  table.release(again)
  expect(table.retain(OPEN_ACL_UNSAFE)).toBe(again)
  view.close()
  // Nothing that is used again is removed as what the view has kept.
  for (let i = 0; i < 3; i++) table.release(table.retain(listOf(i)))
  expect([table.size, table.entries()]).toEqual([1, [[again, [...OPEN_ACL_UNSAFE]]]])
  table.releaseDuringLoad(again)
  expect(table.entries()).toHaveLength(1)
  table.purgeUnused()
  expect(table.entries()).toEqual([])
  expect(table.get(table.retain(OPEN_ACL_UNSAFE))).toBe(OPEN_ACL_UNSAFE)
})

it('lists of a snapshot stay while it is loaded, and those that no node uses are removed at its end', () => {
  const table = new AclTable()
  table.load(7, listOf(1))
  table.load(3, listOf(2))
  // A list that no node uses yet has no use to end.
  table.release(7)
  table.releaseDuringLoad(7)
  expect([table.retainId(7), table.retainId(7), table.size]).toEqual([true, true, 2])
  for (let uses = 0; uses < 2; uses++) table.releaseDuringLoad(7)
  table.releaseDuringLoad(7)
  expect(table.get(7)).toEqual(listOf(1))
  table.retainId(7)
  table.purgeUnused()
  expect(table.entries()).toEqual([[7, listOf(1)]])
  expect(table.retain(listOf(2))).toBe(8)
})
