export { RevocableMutex, type RevocableLockHandle } from './revocable-mutex.ts'
export { RevocableReadWriteLock, type RevocableLockSide } from './revocable-read-write-lock.ts'
export { revoke, type RevokeOptions, type RevokeOutcome } from './revoke.ts'
export type { RevokeRequest } from './request.ts'
