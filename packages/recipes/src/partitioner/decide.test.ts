import { describe, expect, it } from 'vitest'
import { itemsOf, ownerOf, stateOf, assignmentChange, type Phase } from './decide.ts'

const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`)
const owners = (members: readonly string[], items: readonly string[]): (string | undefined)[] =>
  items.map((item) => ownerOf(item, members))

describe('rendezvous hashing', () => {
  const items = names('item-', 1000)

  it('gives every member the same owner, in any order of the members', () => {
    const members = names('m', 7)
    expect(owners(members.toReversed(), items)).toEqual(owners(members, items))
    expect(ownerOf('x', [])).toBeUndefined()
  })

  it('moves only the items of a leaving member, or those that a new member gets', () => {
    for (let n = 2; n <= 20; n++) {
      const members = names('m', n)
      const before = owners(members, items)
      const after = owners(members.slice(1), items)
      const moved = items.filter((_, at) => before[at] !== after[at])
      expect(moved).toEqual(items.filter((_, at) => before[at] === 'm0'))
      expect(moved.length).toBeLessThanOrEqual((2 * items.length) / n)
    }
  })

  it('spreads items evenly, also when names differ in one letter', () => {
    for (const prefix of ['m', 'host-0000', 'é']) {
      const members = names(prefix, 10)
      for (const member of members) {
        const share = itemsOf(member, new Set(members), items).size
        expect(share).toBeGreaterThan(60)
        expect(share).toBeLessThan(140)
      }
    }
  })

  it('assigns nothing to a client outside the group', () => {
    expect(itemsOf('x', new Set(['a']), items).size).toBe(0)
  })
})

describe('assignment changes', () => {
  const phases = new Map<string, Phase>([
    ['a', 'waiting'],
    ['b', 'owned'],
    ['c', 'leaving'],
  ])

  it('queue for new items, and release others once', () => {
    expect(assignmentChange(new Set(['a', 'd']), phases)).toEqual({ acquire: ['d'], release: ['b'] })
    expect(assignmentChange(new Set(), phases)).toEqual({ acquire: [], release: ['a', 'b'] })
    expect(assignmentChange(new Set(['a', 'b', 'c']), phases)).toEqual({ acquire: [], release: [] })
  })

  it('are reflected in the state', () => {
    expect(stateOf(['owned', 'waiting'], true)).toBe('allocating')
    expect(stateOf(['owned', 'leaving', 'waiting'], true)).toBe('releasing')
    expect(stateOf(['owned'], true)).toBe('acquired')
    expect(stateOf([], false)).toBe('allocating')
  })
})
