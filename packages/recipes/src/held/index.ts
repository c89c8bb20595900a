export * from './lost.ts'
