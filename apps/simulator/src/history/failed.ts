import { OpCode } from '@zabra/protocol'
import type { Txn } from '@zabra/server/files'

/** Whether a transaction only says that something failed: of a multi, that one part did. */
export const hasFailed = (txn: Txn): boolean =>
  txn.type === OpCode.error ||
  (txn.type === OpCode.multi && Array.from(txn.txns).some(({ type }) => type === OpCode.error))
