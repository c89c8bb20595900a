import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hierarchical, isQuorumOfAll, majority, votersOfAll, type QuorumVerifier } from './index.ts'

const set = (...ids: number[]): Set<number> => new Set(ids)

/** Voters in groups with weights, the zero among them, and not all of them zero. */
const anyHierarchy = fc
  .array(fc.record({ group: fc.integer({ min: 1, max: 4 }), weight: fc.integer({ min: 0, max: 4 }) }), {
    minLength: 1,
    maxLength: 9,
  })
  .filter((voters) => voters.some(({ weight }) => weight > 0))
  .map((voters) => {
    const groups = new Map<number, number[]>()
    for (const [id, { group }] of voters.entries()) groups.set(group, [...(groups.get(group) ?? []), id])
    return hierarchical({ groups, weights: new Map(voters.map(({ weight }, id) => [id, weight])) })
  })
const anyMajority = fc
  .uniqueArray(fc.nat(20), { minLength: 1, maxLength: 9 })
  .map((voters) => majority(voters))
const anyVerifier: fc.Arbitrary<QuorumVerifier> = fc.oneof(anyMajority, anyHierarchy)
const ids = fc.uniqueArray(fc.nat(20)).map((list) => new Set(list))

describe('every kind of quorum', () => {
  it('shares a voter with every other quorum', () => {
    fc.assert(
      fc.property(anyVerifier, ids, ids, (verifier, a, b) => {
        fc.pre(verifier.isQuorum(a) && verifier.isQuorum(b))
        expect([...a].filter((id) => b.has(id) && verifier.weightOf(id) > 0)).not.toEqual([])
      }),
      { numRuns: 2000 },
    )
  })

  it('is not made of those who are not in another one', () => {
    fc.assert(
      fc.property(anyVerifier, ids, (verifier, a) => {
        const rest = new Set([...verifier.voters].filter((id) => !a.has(id)))
        expect(verifier.isQuorum(a) && verifier.isQuorum(rest)).toBe(false)
      }),
      { numRuns: 2000 },
    )
  })

  it('stays one when somebody joins it', () => {
    fc.assert(
      fc.property(anyVerifier, ids, fc.nat(20), (verifier, a, one) => {
        fc.pre(verifier.isQuorum(a))
        expect(verifier.isQuorum(new Set([...a, one]))).toBe(true)
      }),
    )
  })

  it('is found in all voters and never in nobody', () => {
    fc.assert(
      fc.property(anyVerifier, (verifier) => {
        expect(verifier.isQuorum(verifier.voters)).toBe(true)
        expect(verifier.isQuorum(set())).toBe(false)
      }),
    )
  })

  it('does not count strangers', () => {
    fc.assert(
      fc.property(anyVerifier, ids, (verifier, a) => {
        const known = new Set([...a].filter((id) => verifier.voters.has(id)))
        expect(verifier.isQuorum(a)).toBe(verifier.isQuorum(known))
        expect(verifier.weightOf(99)).toBe(0)
      }),
    )
  })
})

describe('a majority', () => {
  it('of an even number is one more than half', () => {
    const four = majority([1, 2, 3, 4])
    expect(four.isQuorum(set(1, 2))).toBe(false)
    expect(four.isQuorum(set(1, 2, 3))).toBe(true)
  })

  it('of one is that one', () => {
    expect(majority([7]).isQuorum(set(7))).toBe(true)
  })

  it('of two needs both, and an oracle may be asked only where there are two', () => {
    expect(majority([1, 2], { oracle: true }).isQuorum(set(1))).toBe(false)
    expect(majority([1, 2], { oracle: true }).canAskOracle).toBe(true)
    expect(majority([1, 2]).canAskOracle).toBe(false)
    expect(majority([1, 2, 3], { oracle: true }).canAskOracle).toBe(false)
  })
})

describe('a hierarchy', () => {
  const nine = hierarchical({
    groups: new Map([
      [1, [1, 2, 3]],
      [2, [4, 5, 6]],
      [3, [7, 8, 9]],
    ]),
    weights: new Map(),
  })

  it('needs a majority of the weight in a majority of the groups', () => {
    expect(nine.isQuorum(set(1, 2, 4, 5))).toBe(true)
    expect(nine.isQuorum(set(1, 2, 3, 4, 7))).toBe(false)
  })

  it('does not count a group without weight', () => {
    const verifier = hierarchical({
      groups: new Map([
        [1, [1, 2, 3]],
        [2, [4]],
      ]),
      weights: new Map([[4, 0]]),
    })
    expect(verifier.isQuorum(set(1, 2))).toBe(true)
    expect(verifier.isQuorum(set(1, 4))).toBe(false)
  })

  it('gives a weight of one to whom none is given', () => {
    expect([nine.weightOf(1), nine.weightOf(10)]).toEqual([1, 0])
  })
})

describe('two configurations at a time', () => {
  const quorums = { active: majority([1, 2, 3]), proposed: majority([3, 4, 5]) }

  it('need a quorum of each', () => {
    expect(isQuorumOfAll(quorums, set(1, 2, 3))).toBe(false)
    expect(isQuorumOfAll(quorums, set(2, 3, 4))).toBe(true)
    expect(isQuorumOfAll({ active: quorums.active }, set(1, 2))).toBe(true)
  })

  it('have the voters of both', () => {
    expect(votersOfAll(quorums)).toEqual([1, 2, 3, 4, 5])
  })
})
