export * from './mutex.ts'
