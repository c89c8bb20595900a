export * from './leader-election.ts'
export type { Leader } from './announcement.ts'
