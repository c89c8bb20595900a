export * from './revocable-mutex.ts'
export * from './revocable-read-write-lock.ts'
export * from './revoke.ts'
export type { RevokeRequest } from './request.ts'
