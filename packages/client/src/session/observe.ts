import type { Instrumentation, RequestEndCallback, RequestInfo } from '../types.ts'

/** Calls an observer and ignores its errors: observers must not break the client. */
export function callObserver(tell: () => void): void {
  try {
    tell()
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
    const ended = instrumentation.request?.(info())
    if (ended === undefined) return undefined
    return (end) => {
      try {
        ended(redactPath === undefined ? end : redactEnd(end, redactPath))
      } catch {
        // Ignored: an error of the observer.
      }
    }
  } catch {
    return undefined
  }
}

/** Returns the same outcome with the path of the error redacted. */
function redactEnd(
  end: Parameters<RequestEndCallback>[0],
  redactPath: (path: string) => string,
): Parameters<RequestEndCallback>[0] {
  const { error } = end
  if (error?.path === undefined) return end
  const path = redactPath(error.path)
  const message = error.message.replaceAll(error.path, path)
  const copy = Object.create(error, {
    path: { value: path },
    message: { value: message },
    stack: { value: error.stack?.replaceAll(error.path, path) },
    cause: { value: undefined },
  }) as typeof error
  return { ...end, error: copy }
}
