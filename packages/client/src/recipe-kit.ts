/**
 * What recipes need of this package besides its public API: for `@zabra/recipes` and recipes of your own. It may change
 * with any minor version.
 */
export { AsyncQueue, type OverflowPolicy } from './async-queue.ts'
export { withCodecErrors } from './codec-errors.ts'
export {
  aCodec,
  aFunction,
  anAbortSignal,
  anObject,
  anything,
  aText,
  checkArgument,
  checkOptionsOf,
  errorPolicyRule,
  milliseconds,
  oneOf,
  shown,
  trueOrFalse,
  whole,
  type Rule,
} from './checks.ts'

export { abortError } from './errors.ts'
export { isReserved, withoutTimeout } from './internal-client.ts'
export { onAbort } from './on-abort.ts'
export { backoff } from './retry.ts'
export { callObserver } from './session/observe.ts'
export { syncResult } from './sync-result.ts'
export { childPath, nameOf, parentOf, validatePath } from '@zabra/protocol'
