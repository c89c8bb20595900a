export { TwoPhaseCommit } from './two-phase-commit.ts'
export type { TransactionRequest } from './coordinate.ts'
export type { ParticipantHandlers } from './participate.ts'
export type { Decision, Vote } from './decide.ts'
