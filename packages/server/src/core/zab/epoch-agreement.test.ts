import { MAX_EPOCH, makeZxid } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { isAhead } from '../log-position.ts'
import { majority } from '../quorum/index.ts'
import { EpochAgreement, MAX_EPOCH_JUMP, refusalReason, type EpochQuorum } from './epoch-agreement.ts'

const OWN = 10
const FAR = OWN + MAX_EPOCH_JUMP + 1
const quorumOf = (...voters: number[]): EpochQuorum => {
  const verifier = majority(voters)
  // The oracle lets one voter of two decide.
  return (servers, { useOracle }) => verifier.isQuorum(servers) || useOracle !== false
}

/** Returns the agreement of leader 3, which has accepted epoch 10, after voters have connected. */
function agreementOf(
  voters: number[],
  ...claims: readonly (readonly [number, number, ('observer' | undefined)?])[]
) {
  const agreement = new EpochAgreement(3, OWN, quorumOf(...voters))
  const chosen = [[3, OWN] as const, ...claims].map(([server, epoch, role]) =>
    agreement.addServer(server, role === undefined, epoch, false),
  )
  return { agreement, chosen }
}

describe('the epoch of a leader', () => {
  it('counts of one server the higher of two claims that count, and a claim that counts before one that does not', () => {
    const twice = (first: number, second: number): number => {
      const { agreement } = agreementOf([1, 2, 3, 4, 5], [1, first], [1, second], [2, 0])
      expect(agreement.isEpochChosen).toBe(true)
      return agreement.epoch
    }
    expect([twice(12, 20), twice(20, 12)]).toEqual([21, 21])
    expect([twice(12, FAR), twice(FAR, 12)]).toEqual([13, 13])
    const atLimit = OWN + MAX_EPOCH_JUMP
    expect([twice(12, atLimit), twice(atLimit, 12)]).toEqual([atLimit + 1, atLimit + 1])
  })

  it('counts a server as a participant that has claimed to be one on one of two connections', () => {
    for (const roles of [
      [undefined, 'observer'],
      ['observer', undefined],
    ] as const) {
      const { chosen } = agreementOf([1, 2, 3], ...roles.map((role) => [1, 0, role] as const))
      expect(chosen.at(-1)).toBe(roles[0] === 'observer')
    }
    expect(agreementOf([1, 2, 3], [1, 0, 'observer'], [1, 0, 'observer']).chosen.at(-1)).toBe(false)
  })

  it('keeps the lower of two claims beyond its reach, which the next discovery meets first', () => {
    for (const [first, second] of [
      [FAR, FAR + 500],
      [FAR + 500, FAR],
    ] as const) {
      const { agreement } = agreementOf([1, 2, 3], [1, first], [1, second])
      agreement.addServer(2, true, FAR + 700, false)
      // A quorum, 1 and 2, has accepted FAR.
      expect(agreement.limit).toBe(FAR + MAX_EPOCH_JUMP)
    }
  })

  it('reaches beyond its own for a quorum of participants, not for observers or with the oracle', () => {
    expect(agreementOf([1, 2, 3, 4, 5], [1, 5000], [2, 4000], [4, 3000]).agreement.limit).toBe(
      3000 + MAX_EPOCH_JUMP,
    )
    const observed = agreementOf([1, 2, 3, 4, 5], [1, 5000], [2, 4000], [4, 3000, 'observer'])
    expect(observed.agreement.limit).toBe(OWN + MAX_EPOCH_JUMP)
    expect(agreementOf([1, 3], [1, 5000]).agreement.limit).toBe(OWN + MAX_EPOCH_JUMP)
  })

  it('is decided with the oracle only where the caller allows it, and final once it is', () => {
    const { agreement } = agreementOf([1, 3])
    expect(agreement.addServer(3, true, OWN, true)).toBe(true)
    expect(agreement.addServer(1, true, 50, true)).toBe(false)
    expect(agreement.epoch).toBe(OWN + 1)
    expect([agreement.acceptEpoch(3, false), agreement.isEpochAccepted]).toEqual([false, false])
    expect([agreement.acceptEpoch(3, true), agreement.isEpochAccepted]).toEqual([true, true])
    expect([agreement.acceptEpoch(1, true), agreement.isEpochAccepted]).toEqual([false, true])
  })
})

describe('the epoch that a leader stores before it gives up', () => {
  const next = (...given: Parameters<typeof agreementOf>): number | undefined =>
    agreementOf(...given).agreement.epochForNextDiscovery

  it.each<[string, number | undefined, Parameters<typeof agreementOf>]>([
    [
      'that of the nearest voter, one jump at most',
      OWN + MAX_EPOCH_JUMP,
      [
        [1, 2, 3],
        [1, FAR],
      ],
    ],
    ['none without a voter beyond its reach', undefined, [[1, 2, 3]]],
    [
      'none if an observer would complete the quorum',
      undefined,
      [
        [1, 2, 3],
        [1, FAR, 'observer'],
      ],
    ],
    [
      'none if the voters beyond its reach complete no quorum',
      undefined,
      [
        [1, 2, 3, 4, 5],
        [1, FAR],
      ],
    ],
    [
      'none with the oracle in place of a quorum',
      undefined,
      [
        [1, 2],
        [9, FAR],
      ],
    ],
    [
      'none once the epoch is chosen',
      undefined,
      [
        [1, 2, 3],
        [1, 0],
        [2, FAR],
      ],
    ],
  ])('is %s', (_what, epoch, given) => {
    expect(next(...given)).toBe(epoch)
  })

  it('is none when it can go no further', () => {
    const last = MAX_EPOCH - 2
    const agreement = new EpochAgreement(3, last, quorumOf(1, 2, 3))
    agreement.addServer(3, true, last, false)
    agreement.addServer(1, true, last + 1, false)
    expect(agreement.epochForNextDiscovery).toBeUndefined()
    const before = new EpochAgreement(3, last - 1, quorumOf(1, 2, 3))
    before.addServer(3, true, last - 1, false)
    before.addServer(1, true, last + 1, false)
    expect(before.epochForNextDiscovery).toBe(last)
  })
})

it('a history is ahead of another one by its epoch, then by its last zxid, and never of an equal one', () => {
  const at = (epoch: number, counter: number) => ({ epoch, zxid: makeZxid(1, counter) })
  expect(isAhead(at(2, 1), at(1, 9))).toBe(true)
  expect(isAhead(at(1, 9), at(2, 1))).toBe(false)
  expect(isAhead(at(1, 2), at(1, 1))).toBe(true)
  expect(isAhead(at(1, 1), at(1, 2))).toBe(false)
  expect(isAhead(at(1, 1), at(1, 1))).toBe(false)
})

it('a learner is refused for an accepted epoch below 0 or above the last one', () => {
  const info = { serverId: 1, protocolVersion: 0x1_0000, configVersion: 0 }
  const reasons = [-1, 0, MAX_EPOCH - 1, MAX_EPOCH].map((epoch) => refusalReason(info, epoch, 3, 0))
  expect(reasons.map((reason) => reason !== undefined)).toEqual([true, false, false, true])
})
