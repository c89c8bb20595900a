/** Answers to everything that changes nothing. */
export { Reads } from './reads.ts'
export type { Caller, ReadContext } from './reads.ts'
export type { LongAnswer } from './long.ts'
