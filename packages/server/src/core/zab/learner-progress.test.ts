import { describe, expect, it } from 'vitest'
import {
  awaitsEpoch,
  isLate,
  LearnerProgress,
  overdueReason,
  type ProgressState,
} from './learner-progress.ts'

function follower(given: Partial<LearnerProgress> = {}): LearnerProgress {
  return Object.assign(new LearnerProgress(1, 10, false), { serverId: 1, state: 'active', ...given })
}

const ackedUpTo = (acked: number, lastProposed = 9) => ({ lastProposed, acks: { ackedBy: () => acked } })

describe('a learner', () => {
  it('is silent for too long after its deadline, not at it', () => {
    const learner = follower()
    expect(overdueReason(learner, ackedUpTo(9), 10, 5)).toBeUndefined()
    expect(overdueReason(learner, ackedUpTo(9), 11, 5)).toMatch(/^it was silent/)
  })

  it('is late when it leaves a proposal unacknowledged for more ticks than the limit', () => {
    const learner = follower({ deadline: Infinity })
    const reasons = [3, 4, 8, 9].map((tick) => overdueReason(learner, ackedUpTo(8), tick, 5))
    expect(reasons).toEqual([undefined, undefined, undefined, 'it has not acknowledged 9 in time'])
  })

  it('is not late when it has acknowledged the watched proposal, which a later one replaces', () => {
    const learner = follower()
    expect(isLate(learner, ackedUpTo(0, 1), 0, 5)).toBe(false)
    expect(isLate(learner, ackedUpTo(1, 4), 7, 5)).toBe(false)
    expect([learner.watchedZxid, learner.watchedSince]).toEqual([4, 7])
    expect(isLate(learner, ackedUpTo(4, 4), 12, 5)).toBe(false)
    expect(learner.watchedZxid).toBe(-1)
    expect(isLate(learner, ackedUpTo(4, 5), 20, 5)).toBe(false)
    expect(isLate(learner, ackedUpTo(4, 5), 25, 5)).toBe(false)
    expect(isLate(learner, ackedUpTo(4, 5), 26, 5)).toBe(true)
  })

  it('is not late before it is an active follower', () => {
    for (const given of [{ isObserver: true }, { state: 'synced' as const }]) {
      const learner = follower(given)
      expect([isLate(learner, ackedUpTo(0), 0, 1), isLate(learner, ackedUpTo(0), 9, 1)]).toEqual([
        false,
        false,
      ])
    }
  })

  it('awaits the epoch once it is identified and until it has accepted it', () => {
    const states: ProgressState[] = [
      'unidentified',
      'identified',
      'epochSent',
      'epochAccepted',
      'syncing',
      'synced',
      'active',
    ]
    expect(states.filter((state) => awaitsEpoch(follower({ state })))).toEqual(['identified', 'epochSent'])
  })
})
