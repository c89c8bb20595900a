export { Mutex, type MutexOptions } from './mutex.ts'
export type { Participant } from '../lock-queue/participants.ts'
