import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { MemberContext } from './context.ts'
import { forwardedBody } from './forwarded-timeouts.ts'

type Learner = Parameters<typeof forwardedBody>[1]
type Context = Parameters<typeof forwardedBody>[0]

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
  for (const type of [OpCode.setData, OpCode.createSession]) {
    const forwarded = forwardedBody(context(false), learner, { type, body })
    expect([forwarded.length, forwarded.buffer.byteLength]).toEqual([20, 20])
  }
  expect(forwardedBody(context(false), learner, { type: OpCode.setData, body })).toEqual(body)
  expect(forwardedBody(context(true), learner, { type: OpCode.setData, body })).toBe(body)
})
