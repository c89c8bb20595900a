/** Write requests become transactions. */
export { screen } from './decode.ts'
export type { Screening } from './decode.ts'
export { Preparer } from './preparer.ts'
export { sequenceNumber } from './sequence.ts'
export type { PrepareOptions, Prepared, Reconfigure, SessionsView, WriteRequest } from './contract.ts'
