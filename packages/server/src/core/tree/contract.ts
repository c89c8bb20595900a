import type { ACL, OwnerRules } from '@zabra/protocol'
import type { SubTxn, Zxid } from '../types.ts'

export interface TreeOptions extends OwnerRules {
  /** Whether the digest of the tree is kept (`zookeeper.digest.enabled`). */
  readonly digest: boolean
}

/** Hears of changes in the order in which watches must fire. */
export interface ChangeSink {
  created(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void
  /** `acl` is the last one that the node had. */
  deleted(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void
  dataChanged(path: string, acl: readonly ACL[]): void
}

/** Called right after each part of a multi, while the tree shows that part's result and not yet the next one's. */
export type PartDone = (txn: SubTxn) => void

/** Goes through a tree while it changes, and hears of what it may have passed or be about to meet. */
export interface Walker {
  /** A node was added. */
  added(node: number, path: string): void
  /** The tree is about to remove a node, which has no children. */
  removing(node: number): void
  /** A transaction is applied. */
  applied(zxid: Zxid): void
}
