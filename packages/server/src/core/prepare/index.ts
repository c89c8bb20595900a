/** Write requests become transactions. */
export { Preparer, sequenceNumber } from './preparer.ts'
export type { PrepareOptions, Prepared, SessionsView, WriteRequest } from './preparer.ts'
