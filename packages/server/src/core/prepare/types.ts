import type { ReconfigRequest } from '@zabra/protocol'
import type { AclRules } from '../auth/index.ts'
import type { ApplyHint, QuotaBreach, Tree } from '../tree/index.ts'
import type { Digest, Identity, MultiPartsBuilder, SessionId, Txn, Zxid } from '../types.ts'
import type { ChangeCounts } from './pending-tree.ts'

/** The checks of sessions that preparing needs. */
export interface SessionsView {
  /**
   * Returns the error number for a session that may not write, or 0. `global` requires a session that all servers know, because it
   * will own a node.
   */
  check(session: SessionId, global: boolean): number
}

export interface PreparerOptions {
  readonly tree: Tree
  readonly acls: AclRules
  readonly sessions: SessionsView
  /** Whether hard quotas reject writes or are only logged (`enforceQuota`). */
  readonly enforceQuota: boolean
  /** Whether a change of a quota needs ADMIN on the subtree that it limits (`quotaRequiresAdmin`). */
  readonly quotaRequiresAdmin?: boolean
  readonly reconfigEnabled: boolean
  /**
   * Validates a change of the ensemble that would have this zxid. Returns the text of the new configuration, or an error number.
   * Absent where there is no ensemble.
   */
  readonly reconfigure?: Reconfigure
  /** Returns a builder for the parts of a large multi of about `bytes` bytes; an array if left out. */
  readonly createParts?: (bytes: number) => MultiPartsBuilder
  /** The memory of access control lists, in bytes, beyond which no new list is accepted; without a limit if left out. */
  readonly maxAclBytes?: number | undefined
  /** Called for a write that is refused since its list is beyond `maxAclBytes`. */
  readonly onAclsFull?: () => void
  /** Returns whether the memory is full, so that no write may make the data larger; never if left out. */
  readonly isMemoryFull?: () => boolean
  /** Called for a write that is refused since the memory is full. */
  readonly onMemoryFull?: () => void
  /** Called for a write that exceeds a quota and is accepted nevertheless. */
  readonly onQuotaExceeded?: (subject: string, breach: QuotaBreach) => void
  /** Counts the pending changes. */
  readonly changes?: ChangeCounts
}

export type Reconfigure = (request: ReconfigRequest, zxid: Zxid) => string | number

/** The sender and the type of a write; the body is passed separately. */
export interface WriteRequest {
  readonly sessionId: SessionId
  readonly type: number
  readonly identities: readonly Identity[]
}

/**
 * A transaction with the digest of the tree after it, which is absent for errors and when digests are switched off. A transaction
 * of one node comes with a hint for applying it.
 */
export interface PreparedTxn extends ApplyHint {
  readonly txn: Txn
  readonly digest: Digest | undefined
}
