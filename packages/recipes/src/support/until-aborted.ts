import { AbortedError, OperationTimeoutError } from '@zabra/client/core'

/** Yields what a loop yields, and ends without an error when the signal aborts: the caller has asked for that. */
export async function* untilAborted<T>(
  signal: AbortSignal | undefined,
  loop: AsyncIterable<T>,
): AsyncGenerator<T, void, undefined> {
  try {
    yield* loop
  } catch (error) {
    const isAbort = error instanceof AbortedError || error instanceof OperationTimeoutError
    if (!(signal?.aborted && isAbort)) throw error
  }
}
