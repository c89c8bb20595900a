/** The operations of the client protocol: one table, and the functions of each operation. */
export { isLogged, isRead, isWrite, operationOf } from './table.ts'
export { MAX_PARTS as MAX_MULTI_READ_PARTS } from './multi-read.ts'
export { MULTI_END } from './sessions.ts'
export { readTxnAcl, type PathLookup } from './fields.ts'
export { ATTACHED_BYTES } from './node-reads.ts'
