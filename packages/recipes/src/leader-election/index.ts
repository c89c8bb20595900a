export {
  LeaderElection,
  type ElectionOptions,
  type ElectionParticipant,
  type LeadOptions,
} from './leader-election.ts'
export type { Leader } from './announcement.ts'
