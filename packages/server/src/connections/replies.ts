import { ErrorCode, OpCode, writeMultiHeader, type Writer } from '@zabra/protocol'
import { failureOf, type Tree } from '../core/tree/index.ts'
import type {
  CreateContainerTxn,
  CreateTTLTxn,
  CreateTxn,
  SetACLTxn,
  SetDataTxn,
  SubTxn,
  Txn,
} from '../core/types.ts'

/**
 * Writes the body of a reply to a write that is applied; a multi has results in another way, unless it has no parts. `asked` is
 * the op code of the request: only `create` is answered without a stat. The tree must show the write's result and nothing later.
 */
export function writeReplyBody(tree: Tree, asked: number, txn: Txn, writer: Writer): void {
  if (txn.type === OpCode.multi) return writeMultiHeader(writer, MULTI_END)
  // A change of the ensemble is answered as a read of the configuration that it has made.
  if (txn.type === OpCode.reconfig) writer.buffer(txn.data)
  if (changesNode(txn)) tree.writeStat(tree.findWritten(txn.path), writer)
  else if (createsNode(txn)) {
    writer.string(txn.path)
    if (asked !== OpCode.create) tree.writeStat(tree.find(txn.path), writer)
  }
}

/** Stands behind the last result of a multi. */
export const MULTI_END = { type: -1, done: true, err: -1 }

const changesNode = (txn: Txn): txn is SetDataTxn | SetACLTxn =>
  txn.type === OpCode.setData || txn.type === OpCode.reconfig || txn.type === OpCode.setACL

const createsNode = (txn: Txn): txn is CreateTxn | CreateContainerTxn | CreateTTLTxn =>
  txn.type === OpCode.create ||
  txn.type === OpCode.create2 ||
  txn.type === OpCode.createContainer ||
  txn.type === OpCode.createTTL

/**
 * Writes the result of one part of a multi, right after the part is applied. One that is not, since some part has failed, has an
 * error: its own, "not tried" behind the one that failed, or 0 before it.
 */
export function writeMultiResult(tree: Tree, txn: SubTxn, isApplied: boolean, writer: Writer): void {
  if (!isApplied) {
    const err = txn.type === OpCode.error ? txn.err : 0
    writeMultiHeader(writer, { type: OpCode.error, done: false, err })
    return writer.int(err)
  }
  // In a multi the creations of containers and of nodes with a time to live are answered as create2.
  const special = txn.type === OpCode.createContainer || txn.type === OpCode.createTTL
  const type = special ? OpCode.create2 : txn.type
  writeMultiHeader(writer, { type, done: false, err: 0 })
  writeReplyBody(tree, type, txn, writer)
}

/**
 * Whether a write came through a server that its session has left. No client is told so: it may have been its own doing, when
 * it connected to two servers at a time, and a closed connection lets it begin anew (ZOOKEEPER-710).
 */
export function isSessionMoved(txn: Txn): boolean {
  const failed = txn.type === OpCode.multi ? failureOf(txn.txns) : txn
  return failed?.type === OpCode.error && failed.err === ErrorCode.SESSIONMOVED
}

/** Why such a connection is closed. */
export const SESSION_MOVED_REASON = 'Closed: its session has moved to another server'
