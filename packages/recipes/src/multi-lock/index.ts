export * from './multi-lock.ts'
