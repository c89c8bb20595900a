/** Leader election (FastLeaderElection) as a state machine without clock or network. */
export { Election } from './election.ts'
export { decodeNotification, encodeNotification, notificationBytes } from './notification.ts'
export type { Notification } from './notification.ts'
export { electionDefaults } from './types.ts'
export type {
  Configurations,
  ElectionInput,
  ElectionOptions,
  ElectionTimer,
  ElectionWork,
  ElectionState,
} from './types.ts'
export { isOfTerm, NO_VALUE, PeerState, UNTRUSTED_ZXID } from './vote.ts'
export type { LeaderTerm, Vote } from './vote.ts'
