/** Turns write requests into transactions. */
export { precheck } from './precheck.ts'
export type { PrecheckResult } from './precheck.ts'
export { Preparer } from './preparer.ts'
export { sequenceNumber } from './sequence.ts'
export type { PreparedTxn, PreparerOptions, Reconfigure, SessionsView, WriteRequest } from './types.ts'
