import { parentOf } from '@zabra/protocol'
import type { Instrumentation, RequestEndCallback, RequestInfo, RequestOutcome } from '../instrumentation.ts'

/** Calls an observer and ignores its errors: observers must not break the client. */
export function callObserver(call: () => void): void {
  try {
    call()
  } catch {
    // Ignored: an error of the observer.
  }
}

/**
 * Calls the `request` hook of the instrumentation, and returns its end callback. Errors of observers are ignored:
 * they must not break the client.
 */
export function observeRequest(
  instrumentation: Instrumentation,
  info: () => RequestInfo,
  redactPath: ((path: string) => string) | undefined,
): RequestEndCallback | undefined {
  try {
    const onEnd = instrumentation.request?.(info())
    if (onEnd === undefined) return undefined
    return (outcome) => {
      try {
        onEnd(redactPath === undefined ? outcome : redactOutcome(outcome, redactPath))
      } catch {
        // Ignored: an error of the observer.
      }
    }
  } catch {
    return undefined
  }
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
