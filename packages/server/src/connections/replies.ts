import { ErrorCode, OpCode, writeMultiHeader, type Writer } from '@zabra/protocol'
import { operationOf } from '../core/operations/index.ts'
import { failureOf, type Tree } from '../core/tree/index.ts'
import type { SubTxn, Txn } from '../core/types.ts'

/**
 * Writes the body of the reply to an applied write; not the results of a multi. `type` is the op code of the request: only
 * the reply to `create` has no stat. The tree must show the result of the write and no later one.
 */
export function writeReplyBody(tree: Tree, type: number, txn: Txn, writer: Writer): void {
  operationOf(txn.type).writeReply(tree, txn, type, writer)
}

/**
 * Writes the result of one part of a multi. When a part of the multi has failed no part is applied, and each result is an error
 * number: 0 before the failed part, its error, and RUNTIMEINCONSISTENCY after it.
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
 * Whether a write failed because its session has moved to another server. The client gets no such error, since it may itself have
 * connected to two servers: its connection is closed, and it connects again (ZOOKEEPER-710).
 */
export function isSessionMoved(txn: Txn): boolean {
  const failed = txn.type === OpCode.multi ? failureOf(txn.txns) : txn
  return failed?.type === OpCode.error && failed.err === ErrorCode.SESSIONMOVED
}

export const SESSION_MOVED_REASON = 'Closed: its session has moved to another server'
