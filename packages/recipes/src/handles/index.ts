export { LostError, type LostReason } from './lost.ts'
export type {
  Abortable,
  AcquireOptions,
  Handle,
  LockHandle,
  Naming,
  RecipeOptions,
  ReleaseOptions,
  WaitOptions,
} from './types.ts'
