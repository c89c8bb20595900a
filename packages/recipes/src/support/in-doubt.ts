import type { Client } from '@zabra/client/core'
import { abortError, onAbort } from '@zabra/client/recipe-kit'
import { AmbiguousResultError, UNREAD } from './ambiguous-result.ts'
import { isAmbiguous } from './retry.ts'

/** Longest time in milliseconds for learning what became of a write whose caller has given up. */
const OUTCOME_MS = 1000

/**
 * Waits for what became of a write that was sent. Once the signal has aborted, it waits for a second more at most, and not at all
 * without a connection. Rejects with an `AmbiguousResultError` then, and for an error that does not say that the write may be
 * applied.
 */
export async function orInDoubt<T>(
  client: Client,
  outcome: Promise<T>,
  signal: AbortSignal | undefined,
  path: string,
  value?: unknown,
): Promise<T> {
  const inDoubt = (end: string, cause: unknown): AmbiguousResultError =>
    new AmbiguousResultError(`${end}, and it is unknown whether ${path} was written`, { path, cause, value })
  const found = outcome.catch((error: unknown) => {
    throw isAmbiguous(error) ? error : inDoubt(UNREAD, error)
  })
  if (signal === undefined) return found
  found.catch(() => {})
  let stopListening = (): void => {}
  let cancel = (): void => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    const giveUp = (): void =>
      reject(inDoubt('The call ended', abortError(signal.reason, { path, maybeApplied: true })))
    stopListening = onAbort(signal, () => {
      if (client.state !== 'connected') return giveUp()
      cancel = client.platform.clock.after(OUTCOME_MS, 'outcome of a write', giveUp)
    })
  })
  try {
    return await Promise.race([found, stopped])
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

/**
 * Waits for a write that has no marker. Rejects with an `AmbiguousResultError` when it may be applied, whatever kept its reply
 * away.
 */
export async function orAmbiguous<T>(write: Promise<T>, path: string, value?: unknown): Promise<T> {
  try {
    return await write
  } catch (cause) {
    if (!isAmbiguous(cause)) throw cause
    const message = `The reply was lost, and it is unknown whether ${path} was written`
    throw new AmbiguousResultError(message, { path, cause, value })
  }
}
