import type { ACL, OwnerRules } from '@zabra/protocol'
import type { SubTxn, Zxid } from '../types.ts'

export interface TreeOptions extends OwnerRules {
  /** Whether the digest of the tree is kept (`zookeeper.digest.enabled`). */
  readonly digest: boolean
  /** A secret that spreads paths over the index; the same for all trees if left out. */
  readonly hashKey?: number
}

/** Hears of changes in the order in which watches must fire. */
export interface ChangeSink {
  created(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void
  /** `acl` is the last one that the node had. */
  deleted(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void
  dataChanged(path: string, acl: readonly ACL[]): void
}

/**
 * Called right after each part of a multi, while the tree shows that part's result and not yet the next one's; or, when one of
 * them has failed, for each without its being applied.
 */
export type PartCallback = (txn: SubTxn, isApplied: boolean) => void

/** Goes through a tree while it changes, and hears of what it may have passed or be about to meet. */
export interface Traversal {
  /** A node was added. */
  added(node: number, path: string): void
  /** The tree is about to remove a node, which has no children. */
  removing(node: number): void
  /** A transaction is applied. */
  applied(zxid: Zxid): void
}

/** What the preparer knows of the node that a transaction is about, so that the tree need not look for it again. */
export interface NodeRef {
  readonly path: string
  /** What the tree finds the path by, `NodeStore.hash`. */
  readonly hash: number
  /** Its index, or -1. The tree makes sure that it is right, and notes that of a node that it creates. */
  index: number
  /** That of a node that is created or removed. */
  readonly parent: NodeRef | undefined
}

/** What the preparer has found out about a transaction of one node, so that the tree need not find it out again. */
export interface ApplyHint {
  readonly node: NodeRef | undefined
  /** The checksum of the node's path and of the data that the transaction brings. */
  readonly crc: number
}
