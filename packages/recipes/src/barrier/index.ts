export * from './barrier.ts'
