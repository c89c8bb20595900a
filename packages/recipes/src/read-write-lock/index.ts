export * from './read-write-lock.ts'
