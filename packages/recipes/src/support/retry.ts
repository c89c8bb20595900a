import {
  ConnectionLossError,
  MultiError,
  NodeExistsError,
  NoNodeError,
  SessionExpiredError,
  ZooKeeperError,
  type CallOptions,
  type Client,
  type CreateOptions,
  type Data,
} from '@zabra/client/core'
import { backoff } from '@zabra/client/recipe-kit'
import { waitForConnection } from '../handles/own-node-watcher.ts'

/** Returns whether the client can send no more requests. */
export const isFinished = (client: Client): boolean =>
  client.state === 'closed' || client.state === 'expired' || client.state === 'authFailed'

/** Returns whether the session expired and the client has started a new one. */
export const isNewSession = (client: Client, error: unknown): boolean =>
  error instanceof SessionExpiredError && !isFinished(client)

/** Returns whether the request may have been applied. */
export const isAmbiguous = (error: unknown): error is ZooKeeperError =>
  error instanceof ZooKeeperError && error.maybeApplied

/** Returns the cause of a failed transaction if it failed at this operation. */
export const causeAt = (error: unknown, index: number): unknown =>
  error instanceof MultiError && error.index === index ? error.cause : undefined

/** Creates a znode; an existing one counts as success. */
export async function createIfMissing(
  client: Client,
  path: string,
  data: Data | undefined,
  options: CreateOptions,
): Promise<void> {
  try {
    await client.create(path, { data, idempotent: true, ...options })
  } catch (error) {
    if (!(error instanceof NodeExistsError)) throw error
  }
}

/** Returns undefined when the znode does not exist. */
export async function undefinedIfMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if (error instanceof NoNodeError) return undefined
    throw error
  }
}

/**
 * Ignores the failure of a clean-up in the background. The remaining failures mean that the session or the client
 * has ended, which cleans up as well.
 */
export function ignoreFailure(work: Promise<unknown>): void {
  work.catch(() => {})
}

/** Runs idempotent work, and again in a new session when the session expires meanwhile. */
export async function retryInNewSession<T>(client: Client, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isNewSession(client, error)) throw error
    }
  }
}

/**
 * Reads again when the connection broke at the read, however often: the limits of the client's retries must not keep a call from
 * what became of its write.
 */
export async function readThroughLosses<T>(
  client: Client,
  read: (options: CallOptions) => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await read({ retry: {} })
    } catch (error) {
      if (!(error instanceof ConnectionLossError)) throw error
      await waitForConnection(client)
    }
  }
}

/**
 * Returns the pause before each repetition of a loop: none before the first, and longer and longer ones from then on, until the
 * signal aborts or the client ends. A server may fail at once, and go on to fail for as long as it has no space or no leader.
 */
export function pauses(client: Client, signal?: AbortSignal): () => Promise<void> {
  let tries = 0
  return async () => {
    if (tries++ > 0) await backoff(client, tries - 2, { signal })
  }
}

/** Runs idempotent work again in a new session, and repeats it while its outcome is unknown. */
export async function retryUntilKnown<T>(client: Client, work: () => Promise<T>): Promise<T> {
  const pause = pauses(client)
  for (;;) {
    try {
      return await retryInNewSession(client, work)
    } catch (error) {
      if (!isAmbiguous(error) || isFinished(client)) throw error
      await pause()
    }
  }
}
