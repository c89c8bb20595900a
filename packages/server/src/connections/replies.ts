import { ErrorCode, OpCode, writeMultiHeader, type Writer } from '@zabra/protocol'
import { operationOf } from '../core/operations/index.ts'
import { failureOf, type Tree } from '../core/tree/index.ts'
import type { SubTxn, Txn } from '../core/types.ts'

/**
 * Writes the body of a reply to a write that is applied; a multi has results in another way, unless it has no parts. `asked` is
 * the op code of the request: only `create` is answered without a stat. The tree must show the write's result and nothing later.
 */
export function writeReplyBody(tree: Tree, asked: number, txn: Txn, writer: Writer): void {
  operationOf(txn.type).writeReply(tree, txn, asked, writer)
}

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
  const type = operationOf(txn.type).multi?.resultType ?? txn.type
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
