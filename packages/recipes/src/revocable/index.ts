export * from './revocable-mutex.ts'
export * from './revoke.ts'
export type { RevokeRequest } from './request.ts'
