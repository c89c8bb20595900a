export * from './held/index.ts'
export * from './mutex/index.ts'
