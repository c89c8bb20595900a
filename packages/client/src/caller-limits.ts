import type { Cancel, Clock } from '@zabra/runtime'
import { abortError, type ErrorContext } from './errors.ts'
import { onAbort } from './on-abort.ts'
import type { CallOptions } from './types.ts'

/** Runs an operation that continues after its caller's signal or timeout has ended the wait. */
export async function withCallerLimits<T>(
  clock: Clock,
  begin: () => Promise<T>,
  context: ErrorContext,
  options: CallOptions,
): Promise<T> {
  const { signal, timeoutMs } = options
  if (signal?.aborted) throw abortError(signal.reason, context)
  const done = begin()
  if (signal === undefined && timeoutMs === undefined) return done
  done.catch(() => {})
  let stopListening = (): void => {}
  let cancel: Cancel = () => {}
  const ended = new Promise<never>((_resolve, reject) => {
    const fail = (reason: unknown): void => reject(abortError(reason, { ...context, maybeApplied: true }))
    stopListening = onAbort(signal, () => fail(signal?.reason))
    if (timeoutMs !== undefined) {
      cancel = clock.after(timeoutMs, `deadline of ${context.operation}`, () =>
        fail({ name: 'TimeoutError' }),
      )
    }
  })
  try {
    return await Promise.race([done, ended])
  } finally {
    cancel()
    stopListening()
  }
}
