import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { MemberContext } from './context.ts'
import { withForwardedTimeout } from './forwarded-timeouts.ts'

type Learner = Parameters<typeof withForwardedTimeout>[1]
type Context = Parameters<typeof withForwardedTimeout>[0]

const context = (isMember: boolean): Context => ({
  membership: { member: () => (isMember ? {} : undefined) } as Partial<
    MemberContext['membership']
  > as MemberContext['membership'],
  security: { isAuthenticated: () => false } as Partial<
    MemberContext['security']
  > as MemberContext['security'],
  settings: { maxSessionTimeoutMs: 1000 } as MemberContext['settings'],
})
const learner = { serverId: 9 } as Learner

it('a request of a server that no configuration names does not hold what was read with it', () => {
  const chunk = new Uint8Array(65_536).fill(7)
  const body = chunk.subarray(100, 120)
  const request = { sessionId: 1n, xid: 1, type: OpCode.setData, body, identities: [] }
  for (const type of [OpCode.setData, OpCode.createSession]) {
    const { body: own } = withForwardedTimeout(context(false), learner, { ...request, type })
    expect([own.length, own.buffer.byteLength]).toEqual([20, 20])
  }
  expect(withForwardedTimeout(context(false), learner, request)).toEqual(request)
  expect(withForwardedTimeout(context(true), learner, request)).toBe(request)
})
