import type { Instrumentation, RequestEnd, RequestInfo } from '../types.ts'

/** Tells an observer that a request begins. Observers must not break what they observe, so what they throw is theirs. */
export function observeRequest(
  instrumentation: Instrumentation | undefined,
  info: () => RequestInfo,
): RequestEnd | undefined {
  if (instrumentation?.request === undefined) return undefined
  try {
    const ended = instrumentation.request(info())
    if (ended === undefined) return undefined
    return (end) => {
      try {
        ended(end)
      } catch {
        // Theirs to notice.
      }
    }
  } catch {
    return undefined
  }
}
