export * from './semaphore.ts'
export { PermitsConflictError } from './permits.ts'
