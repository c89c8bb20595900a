import { parentOf } from '@zabra/protocol'
import { noop } from '../noop.ts'
import { isThenable } from '../sync-result.ts'
import type { Instrumentation, RequestEndCallback, RequestInfo, RequestOutcome } from '../instrumentation.ts'

/**
 * Calls a hook that no call of the user runs, and returns its result. Ignores what it throws, and what a promise of it rejects with:
 * a hook must neither break the client nor end the process.
 */
export function callObserver<T>(call: () => T): T | undefined {
  try {
    const result = call()
    if (isThenable(result)) result.then(undefined, noop)
    return result
  } catch {
    return undefined
  }
}

/** Calls the `request` hook of the instrumentation as an observer, and returns its end callback, which is one as well. */
export function observeRequest(
  instrumentation: Instrumentation,
  info: () => RequestInfo,
  redactPath: ((path: string) => string) | undefined,
): RequestEndCallback | undefined {
  const onEnd = callObserver(() => instrumentation.request?.(info()))
  if (typeof onEnd !== 'function') return undefined
  return (outcome) =>
    callObserver(() => onEnd(redactPath === undefined ? outcome : redactOutcome(outcome, redactPath)))
}

/** Returns the same outcome with the path of the error redacted. */
function redactOutcome(outcome: RequestOutcome, redactPath: (path: string) => string): RequestOutcome {
  const { error } = outcome
  if (error?.path === undefined) return outcome
  const path = redactPath(error.path)
  const parent = parentOf(error.path)
  const redacted = (text: string): string =>
    text
      .replaceAll(error.path!, path)
      // As `missingParent` words it.
      .replaceAll(`parent ${parent} `, () => `parent ${redactPath(parent)} `)
  const copy = Object.create(error, {
    path: { value: path },
    message: { value: redacted(error.message) },
    stack: { value: error.stack && redacted(error.stack) },
    cause: { value: undefined },
  }) as typeof error
  return { ...outcome, error: copy }
}
