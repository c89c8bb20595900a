import { OpCode } from '@zabra/protocol'
import type { Txn } from '@zabra/server/files'

/** Returns whether a transaction only records a failure: for a multi, that one operation failed. */
export const hasFailed = (txn: Txn): boolean =>
  txn.type === OpCode.error ||
  (txn.type === OpCode.multi && Array.from(txn.txns).some(({ type }) => type === OpCode.error))
