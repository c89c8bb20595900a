/** Write requests become transactions. */
export { precheck } from './decode.ts'
export type { PrecheckResult } from './decode.ts'
export { Preparer } from './preparer.ts'
export { sequenceNumber } from './sequence.ts'
export type { PreparerOptions, PreparedTxn, Reconfigure, SessionsView, WriteRequest } from './types.ts'
