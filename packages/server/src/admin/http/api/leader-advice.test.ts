import { expect, it } from 'vitest'
import { parseConfiguration } from '../../../core/quorum/index.ts'
import type { ApiCall } from './api-route.ts'
import { leaderAdvice } from './leader-advice.ts'

const configuration = parseConfiguration('server.1=a:1:2;2181\nserver.2=b:1:2;2181')
const advice = (leader: number | undefined, version?: string, isLeaderForeign?: boolean): Promise<string> => {
  const answer = version === undefined ? undefined : { version }
  const call = {
    target: {
      leader,
      isLeaderForeign,
      role: 'following',
      configuration,
      settings: { serverId: 1, clientPort: 2181 },
    },
    cluster: { ask: async () => ({ answer, answeredAt: 0, problem: undefined }) },
  }
  return leaderAdvice(call as unknown as ApiCall, 'Replace it.')
}

it('a caller is sent to the leader, or to a later time without one', async () => {
  expect(await advice(2, '3.9.5-zabra-0.1.0, built on 2026-11-21')).toBe('Ask server 2, which leads.')
  expect(await advice(2)).toBe('Ask server 2, which leads.')
  expect(await advice(undefined)).toBe('It is following. Try again once there is a leader.')
})

it('a caller is not sent to an Apache ZooKeeper server, which has no such operation', async () => {
  expect(await advice(2, '3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c, built on 2024-02-12')).toBe(
    'Server 2 leads, and it runs Apache ZooKeeper, which does not have this operation. Replace it.',
  )
})

it('what this server has heard from the leader itself counts before what its client port says, which may be unknown', async () => {
  expect(await advice(2, undefined, true)).toContain('it runs Apache ZooKeeper')
  expect(await advice(2, '3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c', false)).toBe(
    'Ask server 2, which leads.',
  )
})
