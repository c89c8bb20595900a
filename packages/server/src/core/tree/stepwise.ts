import { ErrorCode, OpCode } from '@zabra/protocol'
import { STEP } from '../steps.ts'
import type { CloseSessionTxn, ErrorTxn, MultiTxn, MultiParts, Txn, TxnHeader } from '../types.ts'
import type { ChangeSink, PartCallback } from './types.ts'
import { quotaTarget, STATS_NAME } from './quotas.ts'
import type { Tree } from './tree.ts'

/** From so many nodes on, counting the use of a quota takes several turns. */
const COUNTED_AT_ONCE = 10_000

/**
 * Whether a transaction is so large that it is applied in several turns. The tree must not be read meanwhile, since a
 * transaction is seen whole or not at all.
 */
export function isLarge(tree: Tree, { sessionId }: TxnHeader, txn: Txn): boolean {
  if (txn.type === OpCode.closeSession)
    return txn.paths2Delete.length > STEP || tree.owners.ofSession(sessionId).size > STEP
  const isLargeTree = tree.nodeCount > COUNTED_AT_ONCE
  if (txn.type === OpCode.multi) return txn.txns.length > STEP || (isLargeTree && haveCounted(txn.txns))
  return isLargeTree && counts(txn)
}

/** Whether a transaction has the use of a whole subtree counted: it creates the node for it. */
const counts = (txn: Txn): boolean =>
  (txn.type === OpCode.create || txn.type === OpCode.create2) &&
  quotaTarget(txn.path, STATS_NAME) !== undefined

function haveCounted(parts: MultiParts): boolean {
  for (const part of parts) if (counts(part)) return true
  return false
}

/** As `Tree.apply`, in steps. Until they are through the tree is halfway between two transactions. */
export function* applyInSteps(
  tree: Tree,
  header: TxnHeader,
  txn: Txn,
  sink?: ChangeSink,
  part?: PartCallback,
): Generator<void, number> {
  tree.beginApply()
  let err: number = ErrorCode.OK
  if (txn.type === OpCode.multi) yield* multiInSteps(tree, header, txn, sink, part)
  else if (txn.type === OpCode.closeSession) yield* closeInSteps(tree, header, txn, sink)
  else err = tree.applyPart(header, txn, sink)
  yield* tree.recountQuotasInSteps(STEP * 20)
  tree.endApply(header.zxid)
  return err
}

function* multiInSteps(
  tree: Tree,
  header: TxnHeader,
  { txns }: MultiTxn,
  sink?: ChangeSink,
  part?: PartCallback,
): Generator<void> {
  const isApplied = failureOf(txns) === undefined
  let i = 0
  for (const sub of txns) {
    if (i > 0 && i % STEP === 0) yield
    i++
    if (isApplied) tree.applyPart(header, sub, sink)
    part?.(sub, isApplied)
  }
}

function* closeInSteps(
  tree: Tree,
  header: TxnHeader,
  { paths2Delete }: CloseSessionTxn,
  sink?: ChangeSink,
): Generator<void> {
  for (let i = 0; i < paths2Delete.length; i += STEP) {
    if (i > 0) yield
    for (const path of paths2Delete.slice(i, i + STEP)) tree.remove(header.zxid, path, sink)
  }
  for (let left = tree.owners.firstOfSession(header.sessionId, STEP); left.length > 0;) {
    yield
    for (const node of left) tree.remove(header.zxid, tree.pathOf(node), sink)
    left = tree.owners.firstOfSession(header.sessionId, STEP)
  }
}

/** Applies all parts of a multi, in one turn. One of which a part has failed changes nothing. */
export function applyMulti(
  tree: Tree,
  header: TxnHeader,
  { txns }: MultiTxn,
  sink?: ChangeSink,
  part?: PartCallback,
): number {
  const isApplied = failureOf(txns) === undefined
  for (const sub of txns) {
    if (isApplied) tree.applyPart(header, sub, sink)
    part?.(sub, isApplied)
  }
  return ErrorCode.OK
}

/** Ends a session, in one turn. */
export function applyClose(
  tree: Tree,
  header: TxnHeader,
  { paths2Delete }: CloseSessionTxn,
  sink?: ChangeSink,
): number {
  for (const path of paths2Delete) tree.remove(header.zxid, path, sink)
  // What the transaction does not name went into the tree behind a fuzzy snapshot; it goes with its session too.
  for (const node of tree.owners.firstOfSession(header.sessionId, Infinity))
    tree.remove(header.zxid, tree.pathOf(node), sink)
  return ErrorCode.OK
}

/** The first part of a multi that has failed. */
export const failureOf = (txns: MultiParts): ErrorTxn | undefined =>
  'failure' in txns ? txns.failure : txns.find((part) => part.type === OpCode.error)
