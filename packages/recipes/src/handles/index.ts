export { LostError, type LostReason } from './lost.ts'
export type {
  Abortable,
  AcquireOptions,
  Handle,
  KeptHandle,
  LockHandle,
  Naming,
  RecipeOptions,
  ReleaseOptions,
  WaitOptions,
} from './types.ts'
