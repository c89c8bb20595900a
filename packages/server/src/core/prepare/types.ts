import type { ReconfigRequest } from '@zabra/protocol'
import type { AclRules } from '../auth/index.ts'
import type { ApplyHint, QuotaBreach, Tree } from '../tree/index.ts'
import type { Digest, Identity, MultiPartsBuilder, SessionId, Txn, Zxid } from '../types.ts'

/** What preparing must know of sessions. */
export interface SessionsView {
  /**
   * Why a session may not write, as an error number; 0 when it may. `global` when it must be one that every server knows,
   * since it is to own a node.
   */
  check(session: SessionId, global: boolean): number
}

export interface PreparerOptions {
  readonly tree: Tree
  readonly acls: AclRules
  readonly sessions: SessionsView
  /** Whether hard quotas refuse writes or are only logged (`enforceQuota`). */
  readonly enforceQuota: boolean
  readonly reconfigEnabled: boolean
  /**
   * Judges a change of the ensemble that would have this zxid: gives the text of the new configuration, or the error number
   * of why not. Absent where there is no ensemble.
   */
  readonly reconfigure?: Reconfigure
  /** Keeps the parts of a large multi, which are about so many bytes; in an array if left out. */
  readonly pack?: (bytes: number) => MultiPartsBuilder
  /** Told of a write that goes beyond a quota and is carried out all the same. */
  readonly onQuotaExceeded?: (subject: string, breach: QuotaBreach) => void
}

export type Reconfigure = (request: ReconfigRequest, zxid: Zxid) => string | number

/** Who asks, for what. */
export interface WriteRequest {
  readonly sessionId: SessionId
  readonly type: number
  readonly identities: readonly Identity[]
}

/**
 * A transaction and the digest of the tree behind it (absent for errors and when digests are switched off); of one that is about
 * one node, where that is.
 */
export interface PreparedTxn extends ApplyHint {
  readonly txn: Txn
  readonly digest: Digest | undefined
}
