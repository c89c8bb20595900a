import { expect, it } from 'vitest'
import { lossReason, type SessionStatus } from './policy.ts'

const fine: SessionStatus = {
  state: 'connected',
  sessionId: 5n,
  owner: 5n,
  now: 10_000,
  timeout: 6000,
  lastContact: 9000,
  leaseHorizon: 13_000,
}
const lease = { lease: {} }

it('a lock of the current session on a live connection is held under every policy', () => {
  for (const policy of ['connection', 'session', lease] as const)
    expect(lossReason(policy, fine)).toBeUndefined()
})

it('a broken connection ends a lock under the connection policy only', () => {
  const suspended = { ...fine, state: 'suspended' } as const
  expect(lossReason('connection', suspended)).toBe('suspended')
  expect(lossReason(lease, suspended)).toBeUndefined()
  expect(lossReason('session', suspended)).toBeUndefined()
})

it('a read-only server counts as a broken connection, because it cannot keep a session alive', () => {
  expect(lossReason('connection', { ...fine, state: 'connectedReadOnly' })).toBe('suspended')
})

it('silence for the whole session timeout ends a lock although the state has not changed yet', () => {
  expect(lossReason('connection', { ...fine, now: 14_999 })).toBeUndefined()
  expect(lossReason('connection', { ...fine, now: 15_000 })).toBe('suspended')
  expect(lossReason('session', { ...fine, now: 15_000 })).toBeUndefined()
})

it('the lease policy depends on the lease horizon only', () => {
  expect(lossReason(lease, { ...fine, state: 'suspended', now: 12_999 })).toBeUndefined()
  expect(lossReason(lease, { ...fine, now: 13_000 })).toBe('leasePassed')
})

it('a new session, an expiry or a closed client ends a lock under every policy', () => {
  for (const policy of ['connection', 'session', lease] as const) {
    expect(lossReason(policy, { ...fine, sessionId: 6n })).toBe('expired')
    expect(lossReason(policy, { ...fine, state: 'expired' })).toBe('expired')
    expect(lossReason(policy, { ...fine, state: 'closed' })).toBe('closed')
    expect(lossReason(policy, { ...fine, state: 'authFailed' })).toBe('closed')
  }
})
