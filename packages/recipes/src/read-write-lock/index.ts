export {
  ReadWriteLock,
  type LockSide,
  type ReadWriteParticipant,
  type SideOptions,
} from './read-write-lock.ts'
