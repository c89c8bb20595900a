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
  return orGivenUp(client, found, signal, () =>
    inDoubt('The call ended', abortError(signal!.reason, { path, maybeApplied: true })),
  )
}

/**
 * Waits until something is given back, within the same limits: that goes on in the background when the caller has given up and
 * there is no connection.
 */
export async function orInBackground(
  client: Client,
  givenBack: Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const givenUp = new Error('The call ended')
  try {
    await orGivenUp(client, givenBack, signal, () => givenUp)
  } catch (error) {
    if (error !== givenUp) throw error
  }
}

/** Waits for an outcome; rejects with `givenUp` a second after the signal has aborted, and at once without a connection. */
async function orGivenUp<T>(
  client: Client,
  outcome: Promise<T>,
  signal: AbortSignal | undefined,
  givenUp: () => Error,
): Promise<T> {
  if (signal === undefined) return outcome
  outcome.catch(() => {})
  let stopListening = (): void => {}
  let cancel = (): void => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    const giveUp = (): void => reject(givenUp())
    stopListening = onAbort(signal, () => {
      if (client.state !== 'connected') return giveUp()
      cancel = client.platform.clock.after(OUTCOME_MS, 'outcome of a write', giveUp)
    })
  })
  try {
    return await Promise.race([outcome, stopped])
  } finally {
    stopListening()
    cancel()
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
