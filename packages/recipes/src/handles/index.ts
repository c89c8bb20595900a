export * from './lost.ts'
export type * from './types.ts'
