import type { Instrumentation, RequestEndCallback, RequestInfo } from '../types.ts'

/** Observers must not break what they observe. */
export function callObserver(tell: () => void): void {
  try {
    tell()
  } catch {
    // Theirs to notice.
  }
}

/** Tells an observer that a request begins. Observers must not break what they observe, so what they throw is theirs. */
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
        // Theirs to notice.
      }
    }
  } catch {
    return undefined
  }
}

/** The same end, with an error that names what observers may see of its path. */
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
