export * from './held/index.ts'
