import type { ACL, OwnerRules } from '@zabra/protocol'
import type { SubTxn, Zxid } from '../types.ts'
import type { NamespaceTraffic } from './namespace-traffic.ts'
import type { NodeStore } from './node-store.ts'

export interface TreeOptions extends OwnerRules {
  /** Whether the digest of the tree is kept (`zookeeper.digest.enabled`). */
  readonly digest: boolean
  /** Secret key of the hash of paths. Without it, all trees hash alike. */
  readonly hashKey?: number
  /** Measures what clients read and write; nothing is measured without it. */
  readonly traffic?: NamespaceTraffic
}

/** Receives the changes of the tree, in the order in which watches must fire. */
export interface ChangeSink {
  /** Entries of long access control lists that were looked at to notify watchers, ever. */
  readonly aclEntriesVisited?: number
  created(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void
  /** `acl` is the last one that the node had. */
  deleted(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void
  dataChanged(path: string, acl: readonly ACL[]): void
  /** Whether any node has very many watchers, and whether a change of this one has. */
  readonly hasCrowds?: boolean
  hasCrowd?(path: string): boolean
  /** Whether events wait for `notifyInSteps`. */
  readonly hasWaiting?: boolean
  /** Delivers the events that wait. Until the last step, no client may see the change. */
  notifyInSteps?(): Generator<void>
}

/**
 * Called after each part of a multi, before the next part is applied. When a part of the multi has failed, called for each
 * part with `isApplied` false, and nothing is applied.
 */
export type PartCallback = (txn: SubTxn, isApplied: boolean) => void

/** Walks a tree while the tree changes, and is notified of changes to nodes that it may have visited or may yet visit. */
export interface Traversal {
  /** A node was added. */
  added(node: number, path: string): void
  /** The tree is about to remove a node, which has no children. */
  removing(node: number): void
  /** A transaction was applied. */
  applied(zxid: Zxid): void
}

/** The parts of a tree that a traversal uses. */
export interface Traversable {
  readonly store: NodeStore
  /** The zxid of the last transaction applied. */
  readonly lastZxid: Zxid
  /** Notifies a traversal of changes from now on. Returns a function that ends the notifications. */
  addTraversal(traversal: Traversal): () => void
}

/** A reference to the node of a transaction, made by the preparer, so that applying the transaction needs no second lookup. */
export interface NodeRef {
  readonly path: string
  /** The hash of the path, `NodeStore.hash`. */
  readonly hash: number
  /** Index of the node in the store, or -1. The tree verifies it, and sets it for a node that it creates. */
  index: number
  /** The parent, for a node that is created or removed. */
  readonly parent: NodeRef | undefined
}

/** Results of preparing a transaction that applying it can reuse. */
export interface ApplyHint {
  readonly node: NodeRef | undefined
  /** CRC-32 of the node's path and the new data. */
  readonly crc: number
}
