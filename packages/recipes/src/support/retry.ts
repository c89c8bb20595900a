import { MultiError, NoNodeError, SessionExpiredError, ZooKeeperError, type Client } from '@zabra/client/core'

/** Nothing works with this client any more. */
export const isFinished = (client: Client): boolean =>
  client.state === 'closed' || client.state === 'expired' || client.state === 'authFailed'

/** The session is over, and the client has begun a new one. */
export const isNewSession = (client: Client, error: unknown): boolean =>
  error instanceof SessionExpiredError && !isFinished(client)

/** Nobody knows whether the request was carried out. */
export const isAmbiguous = (error: unknown): error is ZooKeeperError =>
  error instanceof ZooKeeperError && error.maybeApplied

/** The error itself, or the one that made a transaction fail at this operation. */
export const causeAt = (error: unknown, index: number): unknown =>
  error instanceof MultiError && error.index === index ? error.cause : undefined

/** What a call gives, or undefined for a znode that is not there. */
export async function undefinedIfMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if (error instanceof NoNodeError) return undefined
    throw error
  }
}

/**
 * Lets go of something in the background. Every failure that is left then means that the session or the client is over,
 * and what was to be let go with it.
 */
export function ignoreFailure(work: Promise<unknown>): void {
  work.catch(() => {})
}

/** Carries out what may be done twice, again when the session ends in its midst. */
export async function retryInNewSession<T>(client: Client, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isNewSession(client, error)) throw error
    }
  }
}

/** The same, and again while nobody knows whether it was carried out. */
export async function retryUntilKnown<T>(client: Client, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await retryInNewSession(client, work)
    } catch (error) {
      if (!isAmbiguous(error) || isFinished(client)) throw error
    }
  }
}
