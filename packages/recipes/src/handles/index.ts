export { LostError, type LostReason } from './lost.ts'
export type { Abortable, AcquireOptions, LockHandle, Naming, RecipeOptions } from './types.ts'
