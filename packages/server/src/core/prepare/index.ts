/** Turns write requests into transactions. */
export { describeWrite, type WriteDescription } from './describe-write.ts'
export { EagerAccessCheck } from './eager-access.ts'
export type { ChangeCounts } from './pending-tree.ts'
export { precheck } from './precheck.ts'
export { Preparer } from './preparer.ts'
export type { PreparedTxn, PreparerOptions, Reconfigure, SessionsView } from './types.ts'
