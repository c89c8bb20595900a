export { Semaphore, type PermitHolder, type PermitOptions, type SemaphoreOptions } from './semaphore.ts'
export { PermitsConflictError } from './permits.ts'
