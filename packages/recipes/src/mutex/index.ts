export * from './mutex.ts'
export type { Participant } from '../lock-queue/participants.ts'
