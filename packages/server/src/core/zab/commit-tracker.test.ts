import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hierarchical, majority, type QuorumVerifier } from '../quorum/index.ts'
import { AckTracker } from './commit-tracker.ts'

/** Finds the same as `quorumZxid` by counting down. */
function highestByCounting(
  verifier: QuorumVerifier,
  acks: ReadonlyMap<number, number>,
  floor: number,
  limit: number,
): number {
  for (let zxid = limit; zxid > floor; zxid--) {
    const ackers = new Set([...acks].filter(([, acked]) => acked >= zxid).map(([server]) => server))
    if (verifier.isQuorum(ackers)) return zxid
  }
  return floor
}

const verifiers = [
  majority([1]),
  majority([1, 2, 3]),
  majority([1, 2, 3, 4]),
  hierarchical({
    groups: new Map([
      [1, [1, 2, 3]],
      [2, [4, 5]],
    ]),
    weights: new Map([[1, 2]]),
  }),
]

describe('the highest zxid acknowledged by a quorum', () => {
  it('is the one found by counting, for any ACKs, forgotten servers and verifiers', () => {
    const anyStep = fc.tuple(
      fc.constantFrom('ack', 'ack', 'ack', 'forget'),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 30 }),
    )
    fc.assert(
      fc.property(fc.array(anyStep), fc.nat(20), fc.nat(30), (steps, floor, limit) => {
        const tracker = new AckTracker()
        const acks = new Map<number, number>()
        for (const [what, server, zxid] of steps) {
          if (what === 'forget') {
            tracker.forget(server)
            acks.delete(server)
          } else {
            expect(tracker.acknowledge(server, zxid)).toBe(zxid > (acks.get(server) ?? 0))
            acks.set(server, Math.max(zxid, acks.get(server) ?? 0))
          }
          for (const verifier of verifiers)
            expect(tracker.quorumZxid(verifier, floor, limit)).toBe(
              highestByCounting(verifier, acks, floor, limit),
            )
        }
      }),
    )
  })
})

describe('the ACKs of a leader', () => {
  it('of a server that has sent none are before the first transaction', () => {
    const acks = new AckTracker()
    acks.acknowledge(1, 7)
    expect([acks.ackedBy(1), acks.ackedBy(2)]).toEqual([7, -1])
  })

  it('are counted by weight and group in a hierarchy', () => {
    const acks = new AckTracker()
    const found: number[] = []
    for (const server of [4, 5, 2, 1]) {
      acks.acknowledge(server, 9)
      found.push(acks.quorumZxid(verifiers[3]!, 3, 9))
    }
    expect(found).toEqual([3, 3, 3, 9])
  })
})
