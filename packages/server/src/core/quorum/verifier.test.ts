import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hierarchical, isQuorumOfAll, majority, votersOfAll, type QuorumVerifier } from './index.ts'

const set = (...ids: number[]): Set<number> => new Set(ids)

/** Voters in groups, with weights of which some but not all may be 0. */
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

/** A verifier, and two sets of its voters and others that are often quorums: few sets of any ids are. */
const anyVerifierAndSets = anyVerifier.chain((verifier) => {
  const voters = fc.subarray([...verifier.voters], { minLength: Math.floor(verifier.voters.size / 3) })
  const servers = fc
    .tuple(voters, fc.uniqueArray(fc.nat(20), { maxLength: 2 }))
    .map((parts) => new Set(parts.flat()))
  return fc.tuple(fc.constant(verifier), servers, servers)
})

describe('any quorum verifier', () => {
  it('accepts only quorums that have a voter in common', () => {
    fc.assert(
      fc.property(anyVerifierAndSets, ([verifier, a, b]) => {
        fc.pre(verifier.isQuorum(a) && verifier.isQuorum(b))
        expect([...a].filter((id) => b.has(id) && verifier.weightOf(id) > 0)).not.toEqual([])
      }),
      { numRuns: 2000 },
    )
  })

  it('accepts no quorum among the voters outside another quorum', () => {
    fc.assert(
      fc.property(anyVerifier, ids, (verifier, a) => {
        const rest = new Set([...verifier.voters].filter((id) => !a.has(id)))
        expect(verifier.isQuorum(a) && verifier.isQuorum(rest)).toBe(false)
      }),
      { numRuns: 2000 },
    )
  })

  it('accepts a quorum to which a server is added', () => {
    fc.assert(
      fc.property(anyVerifier, ids, fc.nat(20), (verifier, a, one) => {
        fc.pre(verifier.isQuorum(a))
        expect(verifier.isQuorum(new Set([...a, one]))).toBe(true)
      }),
    )
  })

  it('accepts all voters and rejects the empty set', () => {
    fc.assert(
      fc.property(anyVerifier, (verifier) => {
        expect(verifier.isQuorum(verifier.voters)).toBe(true)
        expect(verifier.isQuorum(set())).toBe(false)
      }),
    )
  })

  it('ignores servers that are no voters', () => {
    fc.assert(
      fc.property(anyVerifier, ids, (verifier, a) => {
        const known = new Set([...a].filter((id) => verifier.voters.has(id)))
        expect(verifier.isQuorum(a)).toBe(verifier.isQuorum(known))
        expect(verifier.weightOf(99)).toBe(0)
      }),
    )
  })
})

describe('a majority verifier', () => {
  it('needs one more than half of an even number of voters', () => {
    const four = majority([1, 2, 3, 4])
    expect(four.isQuorum(set(1, 2))).toBe(false)
    expect(four.isQuorum(set(1, 2, 3))).toBe(true)
  })

  it('accepts the only voter', () => {
    expect(majority([7]).isQuorum(set(7))).toBe(true)
  })

  it('needs both of two voters, and can ask an oracle only with two voters', () => {
    expect(majority([1, 2], { oracle: true }).isQuorum(set(1))).toBe(false)
    expect(majority([1, 2], { oracle: true }).canAskOracle).toBe(true)
    expect(majority([1, 2]).canAskOracle).toBe(false)
    expect(majority([1, 2, 3], { oracle: true }).canAskOracle).toBe(false)
  })
})

describe('a hierarchical verifier', () => {
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

  it('does not count a group with a total weight of 0', () => {
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

  it('gives a voter without a weight line the weight 1', () => {
    expect([nine.weightOf(1), nine.weightOf(10)]).toEqual([1, 0])
  })
})

describe('the verifiers of an active and a proposed configuration', () => {
  const quorums = { active: majority([1, 2, 3]), proposed: majority([3, 4, 5]) }

  it('need a quorum of each configuration', () => {
    expect(isQuorumOfAll(quorums, set(1, 2, 3))).toBe(false)
    expect(isQuorumOfAll(quorums, set(2, 3, 4))).toBe(true)
    expect(isQuorumOfAll({ active: quorums.active }, set(1, 2))).toBe(true)
  })

  it('have the voters of both configurations', () => {
    expect(votersOfAll(quorums)).toEqual([1, 2, 3, 4, 5])
  })
})

it('a majority has a size, one more than half of the voters', () => {
  expect(
    [1, 2, 3, 4, 5].map((count) => majority(Array.from({ length: count }, (_, id) => id)).quorumSize),
  ).toEqual([1, 2, 2, 3, 3])
})

it('the voters of two configurations are in ascending order', () => {
  expect(votersOfAll({ active: majority([10, 2]), proposed: majority([9, 2, 1]) })).toEqual([1, 2, 9, 10])
})

it('groups never ask an oracle', () => {
  expect(hierarchical({ groups: new Map([[1, [1, 2]]]), weights: new Map() }).canAskOracle).toBe(false)
})
