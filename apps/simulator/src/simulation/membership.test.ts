import { expect, it } from 'vitest'
import { readMembers } from './membership.ts'
import { GROUPS } from './ensemble-plan.ts'
import { membershipText } from './membership-text.ts'

const isQuorum = (text: string, ...ids: number[]): boolean =>
  readMembers(text).isQuorum((id) => ids.includes(id))

const roles = new Map([1, 2, 3, 4, 5].map((id) => [id, 'participant' as const]))

it('a majority of the voters is a quorum', () => {
  const text = membershipText(roles, undefined)
  expect([isQuorum(text, 1, 2), isQuorum(text, 1, 2, 3)]).toEqual([false, true])
})

it('a majority of the weight in a majority of the groups is a quorum, possibly a minority of the voters', () => {
  const [thirds, pairs, heavy, uneven] = GROUPS[5]!.map((groups) => membershipText(roles, groups))
  expect([isQuorum(thirds!, 4, 5), isQuorum(thirds!, 1, 2, 3)]).toEqual([true, false])
  expect([isQuorum(pairs!, 1, 2, 5), isQuorum(pairs!, 1, 3, 5)]).toEqual([true, false])
  expect([isQuorum(heavy!, 1, 2), isQuorum(heavy!, 2, 3, 4)]).toEqual([true, false])
  expect([isQuorum(uneven!, 1, 2, 4), isQuorum(uneven!, 1, 2, 3, 5)]).toEqual([true, false])
})

it('observers, and groups without weight, do not count', () => {
  const quiet = new Map([...roles, [4, 'observer' as const]])
  const text = membershipText(quiet, GROUPS[5]![0])
  expect(text).not.toContain('group.2')
  expect([...readMembers(text).voters]).toEqual([1, 2, 3, 5])
  expect([isQuorum(text, 4, 5), isQuorum(text, 1, 2, 5)]).toEqual([false, true])
})
