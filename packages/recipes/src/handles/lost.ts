import { StateError } from '@zabra/client/core'

/**
 * Why a right ended. `released` is the holder's own doing; every other reason means that somebody else may have it now.
 * `suspended`: the connection broke. `leasePassed`: the session can have expired. `expired`: it has. `nodeDeleted`: the
 * znode that stands for the right is gone. `revoked`: somebody took it away. `closed`: the client was closed.
 */
export type LostReason =
  | 'suspended'
  | 'leasePassed'
  | 'expired'
  | 'nodeDeleted'
  | 'revoked'
  | 'released'
  | 'closed'

/** A right is held no longer. */
export class LostError extends StateError {
  static override readonly tag = 'LostError'
  /** Why it ended. */
  readonly reason: LostReason
  /** The fencing token of the right that ended. */
  readonly token: bigint

  constructor(message: string, reason: LostReason, token: bigint, path: string, cause?: unknown) {
    super(message, 'LOST', { path, cause })
    this.reason = reason
    this.token = token
  }
}
