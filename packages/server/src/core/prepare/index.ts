/** Write requests become transactions. */
export { screen } from './decode.ts'
export type { Screening } from './decode.ts'
export { Preparer, sequenceNumber } from './preparer.ts'
export type { PrepareOptions, Prepared, Reconfigure, SessionsView, WriteRequest } from './preparer.ts'
