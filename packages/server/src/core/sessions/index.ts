/** Ids, passwords, timeouts and expiry of sessions. */
export { SessionIdGenerator } from './session-id-generator.ts'
export { apachePasswordFor, SessionPasswords } from './password.ts'
export { LearnerSessions } from './learner-sessions.ts'
export { negotiateTimeout, SessionTracker, tickAfter } from './session-tracker.ts'
export type { Session, SessionRegistry, SessionTable } from './types.ts'
