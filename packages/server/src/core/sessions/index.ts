/** Ids, passwords and the life of sessions. */
export { SessionIds } from './ids.ts'
export { isPasswordOf, passwordFor } from './password.ts'
export { LearnerSessions } from './learner-sessions.ts'
export { negotiate, SessionTracker, tickBehind } from './tracker.ts'
export type { Session, Sessions, SessionTable } from './contract.ts'
