import { CONTAINER_OWNER, ttlOwner } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { OwnerIndex } from './owners.ts'

const [MINE, OTHERS] = [0x100001402ee0000n, -5n]

it('owners of nodes are counted by their kinds, and found by session', () => {
  const owners = new OwnerIndex({ extendedTypes: false })
  expect([owners.of(1), owners.ephemeralCount, owners.sessionCount]).toEqual([0n, 0, 0])
  for (const [node, owner] of [
    [1, MINE],
    [2, MINE],
    [3, OTHERS],
    [4, CONTAINER_OWNER],
  ] as const)
    owners.set(node, owner)
  expect([1, 3, 4, 5].map((node) => owners.of(node))).toEqual([MINE, OTHERS, CONTAINER_OWNER, 0n])
  expect([owners.ephemeralCount, owners.sessionCount, owners.containers.size, owners.ttl.size]).toEqual([
    3, 2, 1, 0,
  ])
  expect([[...owners.ofSession(MINE)], [...owners.ofSession(OTHERS)], [...owners.ofSession(9n)]]).toEqual([
    [1, 2],
    [3],
    [],
  ])
  expect(new Set(owners.sessions())).toEqual(new Set([MINE, OTHERS]))
})

it('nodes with a time to live are no ephemeral nodes of a session', () => {
  const owners = new OwnerIndex({ extendedTypes: true })
  owners.set(1, ttlOwner(1000))
  owners.set(2, MINE)
  expect([owners.ephemeralCount, owners.sessionCount, [...owners.ttl]]).toEqual([1, 1, [1]])
  owners.delete(1)
  expect([owners.ephemeralCount, owners.ttl.size, owners.of(1)]).toEqual([1, 0, 0n])
})

it('nodes without an owner, and the last node of each owner, leave nothing behind', () => {
  const owners = new OwnerIndex({ extendedTypes: true })
  owners.set(1, MINE)
  owners.set(2, MINE)
  owners.set(3, CONTAINER_OWNER)
  owners.delete(7)
  owners.delete(1)
  expect([owners.ephemeralCount, owners.sessionCount, [...owners.ofSession(MINE)]]).toEqual([1, 1, [2]])
  owners.delete(2)
  owners.delete(2)
  owners.delete(3)
  expect([owners.ephemeralCount, owners.sessionCount, owners.containers.size]).toEqual([0, 0, 0])
  expect([...owners.sessions()]).toEqual([])
})
