import { UsageError } from './errors.ts'
import { noop } from './noop.ts'

export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function'

/**
 * Returns the result of a function of the caller. Throws a `UsageError` for a promise, which would be written as an object without
 * members, or taken for true, and whose rejection no code would handle. `what` names the function.
 */
export function syncResult<T>(what: string, result: T): T {
  if (!isThenable(result)) return result
  result.then(undefined, noop)
  throw new UsageError(`Expected ${what} that is not async, got a promise`)
}
