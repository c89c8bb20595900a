export { LeaderElection, type ElectionOptions, type ElectionParticipant } from './leader-election.ts'
export type { Leader } from './announcement.ts'
