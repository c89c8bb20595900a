/** The client side of each role: what happens to writes, syncs and sessions where this server decides, and where another does. */
export type { Asker, Entry, KeptDigests, Requester, Write, Writes, WritesKit } from './contract.ts'
export { LeaderWrites } from './leader-writes.ts'
export type { Journal, LearnerRequest, Quorum } from './leader-contract.ts'
export { LearnerWrites } from './learner-writes.ts'
export type { Forwarded, LeaderLink } from './learner-writes.ts'
export { ReadOnlyWrites } from './read-only-writes.ts'
