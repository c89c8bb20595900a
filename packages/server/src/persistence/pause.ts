import type { Clock } from '@zabra/runtime'

/** Returns a promise, to be awaited, when the caller has worked long enough without a pause; undefined otherwise. Throws to end the work. */
export type Pause = () => Promise<void> | undefined

/** Returns pauses for work that is to hold the event loop for `ms` at a time. `check` may throw, to end the work. */
export function pauseAfter(
  clock: Pick<Clock, 'monotonic' | 'immediate'>,
  ms: number,
  check: () => void = () => {},
): Pause {
  let since = clock.monotonic()
  return () => {
    check()
    if (clock.monotonic() - since < ms) return undefined
    return new Promise((resolve) => {
      clock.immediate(() => {
        since = clock.monotonic()
        resolve()
      })
    })
  }
}
