/** Choosing a leader, as a machine without clock or network. */
export { Election, electionDefaults } from './election.ts'
export type {
  Configurations,
  ElectionInput,
  ElectionSettings,
  ElectionTimer,
  ElectionWork,
  Footing,
} from './election.ts'
export { decodeNotification, encodeNotification } from './notification.ts'
export type { Notification } from './notification.ts'
export { NOBODY, PeerState, UNTRUSTED } from './vote.ts'
export type { Vote } from './vote.ts'
