import { ZooKeeperError } from '@zabra/client/core'

/**
 * Why a lock was lost. `released`: the holder released it; with every other reason another client may hold it now.
 * `suspended`: the connection broke. `leasePassed`: the session may have expired. `expired`: the session expired.
 * `nodeDeleted`: the znode of the lock was deleted. `revoked`: another client revoked it. `closed`: the client was
 * closed.
 */
export type LostReason =
  | 'suspended'
  | 'leasePassed'
  | 'expired'
  | 'nodeDeleted'
  | 'revoked'
  | 'released'
  | 'closed'

/** The lock is no longer held. */
export class LostError extends ZooKeeperError {
  static override readonly tag = 'LostError'
  readonly reason: LostReason
  /** The fencing token of the lost lock. */
  readonly token: bigint

  constructor(message: string, reason: LostReason, token: bigint, path: string, cause?: unknown) {
    super(message, 'LOST', { path, cause })
    this.reason = reason
    this.token = token
  }
}
