export {
  LeaderElection,
  type ElectionOptions,
  type ElectionParticipant,
  type Leadership,
} from './leader-election.ts'
export type { Leader } from './announcement.ts'
