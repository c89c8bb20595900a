import { ErrorCode, OpCode } from '@zabra/protocol'
import { STEP, StepCounter } from '../steps.ts'
import type { CloseSessionTxn, ErrorTxn, MultiParts, MultiTxn, Txn, TxnHeader, Zxid } from '../types.ts'
import type { OwnerIndex } from './owners.ts'
import { quotaTarget, STATS_NAME } from './quotas.ts'
import type { ChangeSink, PartCallback } from './types.ts'

/** In a tree of more nodes than this, a new quota is counted in several turns. */
const COUNTED_AT_ONCE = 10_000
/** Nodes that a quota counts in one step. */
const COUNTED_PER_STEP = STEP * 20

/** A tree, as far as transactions are applied to it in steps. */
interface SteppedTree {
  readonly owners: OwnerIndex
  readonly nodeCount: number
  applyPart(header: TxnHeader, txn: Txn, sink?: ChangeSink): number
  remove(zxid: Zxid, path: string, sink?: ChangeSink): number
  pathOf(node: number): string
  beginApply(): void
  recountQuotasInSteps(nodes: number): Generator<void>
  endApply(zxid: Zxid): void
}

/**
 * Whether a transaction may take several turns. Nothing may read the tree between them, since a transaction is seen whole or not
 * at all, and no client may see it before the watchers of its node have their events.
 */
export const appliesInSteps = ({ nodeCount }: SteppedTree, txn: Txn, sink?: ChangeSink): boolean =>
  txn.type === OpCode.multi ||
  txn.type === OpCode.closeSession ||
  (nodeCount > COUNTED_AT_ONCE && createsQuota(txn)) ||
  (sink?.hasCrowds === true && 'path' in txn && sink.hasCrowd!(txn.path))

/** Whether a transaction creates the node that counts the use of a quota, which then counts a whole subtree. */
const createsQuota = (txn: Txn): boolean =>
  'acl' in txn && txn.type !== OpCode.setACL && quotaTarget(txn.path, STATS_NAME) !== undefined

/** Applies a transaction in steps, and returns its error number. Until the last step the tree is inconsistent. */
export function* applyInSteps(
  tree: SteppedTree,
  header: TxnHeader,
  txn: Txn,
  sink?: ChangeSink,
  part?: PartCallback,
): Generator<void, number> {
  tree.beginApply()
  let err: number = ErrorCode.OK
  if (txn.type === OpCode.multi) yield* applyMulti(tree, header, txn, sink, part)
  else if (txn.type === OpCode.closeSession) yield* applyCloseSession(tree, header, txn, sink)
  else err = tree.applyPart(header, txn, sink)
  if (sink?.hasWaiting === true) yield* sink.notifyInSteps!()
  yield* tree.recountQuotasInSteps(COUNTED_PER_STEP)
  tree.endApply(header.zxid)
  return err
}

/** Applies the parts of a multi. When one of them has failed, none is applied. */
export function* applyMulti(
  tree: Pick<SteppedTree, 'applyPart'>,
  header: TxnHeader,
  { txns }: MultiTxn,
  sink?: ChangeSink,
  part?: PartCallback,
): Generator<void> {
  const isApplied = failureOf(txns) === undefined
  const step = new StepCounter()
  for (const sub of txns) {
    if (step.begins('path' in sub ? sub.path : '')) yield
    if (isApplied) countAclEntries(step, sink, () => tree.applyPart(header, sub, sink))
    if (sink?.hasWaiting === true) yield* sink.notifyInSteps!()
    part?.(sub, isApplied)
  }
}

/**
 * Removes the nodes that the transaction names, then all others of the session: a fuzzy snapshot may hold some that the
 * transaction does not name.
 */
export function* applyCloseSession(
  tree: Pick<SteppedTree, 'owners' | 'pathOf' | 'remove'>,
  { sessionId, zxid }: TxnHeader,
  { paths2Delete }: CloseSessionTxn,
  sink?: ChangeSink,
): Generator<void> {
  const step = new StepCounter()
  for (const path of paths2Delete) {
    if (step.begins(path)) yield
    countAclEntries(step, sink, () => tree.remove(zxid, path, sink))
    if (sink?.hasWaiting === true) yield* sink.notifyInSteps!()
  }
  // A copy: the index changes as nodes are removed. Nodes that a later transaction has created, in a snapshot that holds its
  // effects already, stay.
  const others = [...tree.owners.ofSession(sessionId)]
  for (const other of others) {
    // Removed already, with a node above it.
    if (!tree.owners.ofSession(sessionId).has(other)) continue
    const path = tree.pathOf(other)
    if (step.begins(path)) yield
    countAclEntries(step, sink, () => tree.remove(zxid, path, sink))
    if (sink?.hasWaiting === true) yield* sink.notifyInSteps!()
  }
}

/** Applies a part, and counts the entries of access control lists that were looked at to notify watchers of it. */
function countAclEntries(step: StepCounter, sink: ChangeSink | undefined, apply: () => void): void {
  const visited = sink?.aclEntriesVisited ?? 0
  apply()
  step.addAclEntries((sink?.aclEntriesVisited ?? 0) - visited)
}

/** Returns the first part of a multi that has failed. */
export const failureOf = (txns: MultiParts): ErrorTxn | undefined =>
  'failure' in txns ? txns.failure : txns.find((part) => part.type === OpCode.error)
