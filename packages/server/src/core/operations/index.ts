/** The operations of the client protocol: one table, and the functions of each operation. */
export { isRead, isWrite, operationOf } from './table.ts'
export { MULTI_END } from './sessions.ts'
export type { PathLookup } from './types.ts'
export { readTxnAcl } from './txn-fields.ts'
