import { describe, expect, it } from 'vitest'
import { planUpgrade, type UpgradedCluster } from './upgrade-plan.ts'

const member = (id: number, changes = {}) => ({
  id,
  state: 'follower',
  participant: true,
  softwareVersion: '3.9.5-zabra-0.1.0, built on x',
  problem: null,
  ...changes,
})
const cluster: UpgradedCluster = {
  leader: 2,
  failuresLeft: 1,
  features: { release: 1, finalized: 1, proposed: null },
  members: [member(1), member(2), member(3), member(4, { participant: false })],
}

describe('planUpgrade', () => {
  it('takes observers first, then followers, and the leader last', () => {
    const { order, problems, notes } = planUpgrade(cluster)
    expect([order.map(({ id }) => id), problems, notes]).toEqual([[4, 1, 3, 2], [], []])
  })

  it.each([
    [{ members: [...cluster.members.slice(1), member(1, { problem: 'refused' })] }, 'server 1: refused'],
    [{ leader: null }, 'the ensemble has no leader'],
    [{ failuresLeft: 0 }, 'the next voter that stops takes the quorum with it: start those that are down'],
    [
      { features: { release: 2, finalized: 2, proposed: 3 } },
      'feature level 3 waits for members to store it: start them',
    ],
  ])('does not begin with %j', (changes, problem) => {
    expect(planUpgrade({ ...cluster, ...changes }).problems).toEqual([problem])
  })

  it.each([
    [{ features: { release: 2, finalized: 1, proposed: null } }, 'feature level 2 of the running release'],
    [
      { members: [...cluster.members.slice(1), member(1, { softwareVersion: '2, x' })] },
      'go on with those of the earlier',
    ],
    [{ members: [member(1), member(2)] }, 'fewer than three voters'],
  ])('notes of %j', (changes, text) => {
    expect(planUpgrade({ ...cluster, ...changes })).toMatchObject({
      problems: [],
      notes: [expect.stringContaining(text)],
    })
  })
})
