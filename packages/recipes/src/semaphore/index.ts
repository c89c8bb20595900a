export { Semaphore, type PermitHolder, type SemaphoreOptions } from './semaphore.ts'
export { PermitsConflictError } from './permits.ts'
