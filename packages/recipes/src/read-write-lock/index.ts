export { ReadWriteLock, type LockSide, type ReadWriteParticipant } from './read-write-lock.ts'
