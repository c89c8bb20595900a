/** Turns write requests into transactions. */
export { precheck } from './precheck.ts'
export { Preparer } from './preparer.ts'
export type { PreparedTxn, Reconfigure, SessionsView } from './types.ts'
