import type { Client, ConnectionState, ErrorPolicy } from '@zabra/client/core'
import type { LostReason } from './lost.ts'

/** Input of the loss policy. Times are on the monotonic clock. */
export interface SessionStatus {
  readonly state: ConnectionState
  readonly sessionId: bigint
  /** Id of the session that owns the znode. */
  readonly owner: bigint
  readonly now: number
  readonly timeout: number
  readonly lastContact: number
  readonly leaseHorizon: number
}

/** Returns why a lock on an ephemeral znode counts as lost, or undefined while it is held. */
export function lossReason(policy: ErrorPolicy, status: SessionStatus): LostReason | undefined {
  const { state, sessionId, owner, now, timeout, lastContact, leaseHorizon } = status
  if (state === 'closed' || state === 'authFailed') return 'closed'
  if (state === 'expired' || sessionId !== owner) return 'expired'
  if (policy === 'session') return undefined
  if (policy !== 'connection') return now < leaseHorizon ? undefined : 'leasePassed'
  // After a pause of the process the state is outdated; only the clock shows that.
  return state === 'connected' && now < lastContact + timeout ? undefined : 'suspended'
}

/** Returns the current status for a znode that session `owner` owns. */
export const sessionStatusOf = (client: Client, owner: bigint, state = client.state): SessionStatus => ({
  state,
  owner,
  sessionId: client.session.id,
  timeout: client.session.timeoutMs,
  now: client.platform.clock.monotonic(),
  lastContact: client.lastContact,
  leaseHorizon: client.leaseHorizon,
})
