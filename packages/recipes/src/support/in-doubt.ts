import type { Client } from '@zabra/client/core'
import { abortError, onAbort } from '@zabra/client/recipe-kit'
import { AmbiguousResultError } from './ambiguous-result.ts'

/** Longest time in milliseconds for learning what became of a write whose caller has given up. */
const OUTCOME_MS = 1000

/**
 * Waits for what became of a write that was sent. Once the signal has aborted, it waits for a second more at most, and only
 * while there is a connection, and then rejects with an `AmbiguousResultError`.
 */
export async function orInDoubt<T>(
  client: Client,
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  path: string,
  value?: unknown,
): Promise<T> {
  if (signal === undefined) return promise
  promise.catch(() => {})
  let stopListening = (): void => {}
  let cancel = (): void => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    const giveUp = (): void => {
      const message = `The call ended, and it is unknown whether ${path} was written`
      const cause = abortError(signal.reason, { path, maybeApplied: true })
      reject(new AmbiguousResultError(message, { path, cause, value }))
    }
    stopListening = onAbort(signal, () => {
      if (client.state !== 'connected') return giveUp()
      cancel = client.platform.clock.after(OUTCOME_MS, 'outcome of a write', giveUp)
    })
  })
  try {
    return await Promise.race([promise, stopped])
  } finally {
    stopListening()
    cancel()
  }
}

/**
 * Waits until something is given back, within the same limits: that goes on in the background when the caller has given up and
 * there is no connection.
 */
export async function orInBackground(
  client: Client,
  givenBack: Promise<void>,
  signal: AbortSignal | undefined,
  path: string,
): Promise<void> {
  try {
    await orInDoubt(client, givenBack, signal, path)
  } catch (error) {
    if (!(error instanceof AmbiguousResultError)) throw error
  }
}
