import type { Clock } from '@zabra/runtime'
import { abortError, ClosedError, OperationTimeoutError, type ZooKeeperError } from './errors.ts'
import { onAbort } from './on-abort.ts'
import type { Session } from './session/session.ts'

/** Milliseconds without a session after which the process is warned, once. */
const WARN_AFTER_MS = 5000

export interface FirstConnectionLimits {
  readonly signal: AbortSignal | undefined
  /** Milliseconds that connecting may take in all, and those left of them; undefined for no limit. */
  readonly timeoutMs: number | undefined
  readonly leftMs: number | undefined
  /** Shows a warning of the process. */
  readonly warn: ((message: string) => void) | undefined
}

let hasWarned = false

/**
 * Starts a session and resolves when a server has granted it. Rejects when the signal aborts, when the time has passed,
 * with the reason of the last attempt, and with the error that closes the client.
 */
export async function firstConnection(
  session: Session,
  clock: Clock,
  { signal, timeoutMs, leftMs, warn }: FirstConnectionLimits,
): Promise<void> {
  const connected = session.states.firstConnection()
  let ended: ZooKeeperError | undefined
  const end = (error: ZooKeeperError): void => {
    ended = error
    session.finish(new ClosedError('Connecting was aborted', 'CLOSED', { cause: error }))
  }
  const abort = (): void => {
    const error = abortError(signal!.reason, { operation: 'connect' })
    error.message += lastAttempt(session)
    end(error)
  }
  const timers = [
    timeoutMs !== undefined &&
      clock.after(leftMs ?? timeoutMs, 'limit of connect', () => end(timeoutError(session, timeoutMs))),
    !hasWarned &&
      warn !== undefined &&
      clock.after(WARN_AFTER_MS, 'warning of connect', () => {
        hasWarned = true
        const what = `No server has granted a session for ${WARN_AFTER_MS / 1000} s${lastAttempt(session)}`
        warn(`${what}. connect() tries on${timeoutMs === undefined ? '' : `, for ${timeoutMs} ms in all`}.`)
      }),
  ]
  const stopListening = onAbort(signal, abort)
  if (signal?.aborted !== true) session.start()
  const stop = (): void => {
    stopListening()
    for (const cancel of timers) if (cancel) cancel()
  }
  // No code runs between the last check of the limits and their removal.
  return connected.then(
    () => {
      stop()
      if (ended !== undefined) throw ended
    },
    (error: unknown) => {
      stop()
      throw ended ?? error
    },
  )
}

/** Returns the words on the last failed attempt; empty when none has failed. */
function lastAttempt({ lastFailure }: Session): string {
  return lastFailure === undefined
    ? ''
    : `; the last attempt, to ${lastFailure.server}, failed: ${lastFailure.error.message}`
}

function timeoutError(session: Session, timeoutMs: number): ZooKeeperError {
  const message = `connect: no server granted a session within ${timeoutMs} ms${lastAttempt(session)}. Set connectTimeoutMs, or waitForever: true`
  return new OperationTimeoutError(message, 'OPERATION_TIMEOUT', {
    operation: 'connect',
    cause: session.lastFailure?.error,
  })
}
