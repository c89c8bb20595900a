import type { Client, ConnectionState, ErrorPolicy } from '@zabra/client/core'
import type { LostReason } from './lost.ts'

/** All that the question depends on. Times are those of the monotonic clock. */
export interface SessionStatus {
  readonly state: ConnectionState
  readonly sessionId: bigint
  /** The session that the znode belongs to. */
  readonly owner: bigint
  readonly now: number
  readonly timeout: number
  readonly lastContact: number
  readonly leaseHorizon: number
}

/** Why a right that stands on an ephemeral znode must be counted as lost, or undefined while it is held. */
export function lossReason(policy: ErrorPolicy, situation: SessionStatus): LostReason | undefined {
  const { state, sessionId, owner, now, timeout, lastContact, leaseHorizon } = situation
  if (state === 'closed' || state === 'authFailed') return 'closed'
  if (state === 'expired' || sessionId !== owner) return 'expired'
  if (policy === 'session') return undefined
  if (policy !== 'connection') return now < leaseHorizon ? undefined : 'leasePassed'
  // A process that stood still finds its state as it left it; only the clock tells.
  return state === 'connected' && now < lastContact + timeout ? undefined : 'suspended'
}

/** How things stand for a znode of session `owner`. */
export const sessionStatusOf = (client: Client, owner: bigint, state = client.state): SessionStatus => ({
  state,
  owner,
  sessionId: client.session.id,
  timeout: client.session.timeout,
  now: client.platform.clock.monotonic(),
  lastContact: client.lastContact,
  leaseHorizon: client.leaseHorizon,
})
