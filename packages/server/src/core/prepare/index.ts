/** Turns write requests into transactions. */
export { EagerAccessCheck } from './eager-access.ts'
export { precheck } from './precheck.ts'
export { Preparer } from './preparer.ts'
export type { PreparedTxn, Reconfigure, SessionsView } from './types.ts'
