import type { Client } from './client-api.ts'
import type { InternalClient } from './internal-client.ts'
import { isAbandonedByCaller, ZooKeeperError } from './errors.ts'
import { onAbort } from './on-abort.ts'
import { randomFraction } from './random-fraction.ts'
import type { CallOptions } from './types.ts'

const BASE_MS = 100
const CAP_MS = 10_000

/**
 * Resolves after a random delay that grows exponentially with `tries`, or when the client ends, the signal of the call aborts
 * or its time has passed: the next request of the call rejects then.
 */
export async function backoff(
  client: Pick<Client, 'platform' | 'states'>,
  tries: number,
  { signal, timeoutMs = Infinity }: Pick<CallOptions, 'signal' | 'timeoutMs'> = {},
): Promise<void> {
  const { clock, random } = client.platform
  const wait = randomFraction(random) * Math.min(CAP_MS, BASE_MS * 2 ** Math.min(tries, 20))
  const states = client.states()
  const end = (): void => void states.return?.()
  const cancel = clock.after(Math.min(wait, timeoutMs), 'backoff', end)
  const stopListening = onAbort(signal, end)
  for await (const _change of states);
  cancel()
  stopListening()
}

/** Resolves when the client is connected. Rejects when the client closes. */
async function waitUntilConnected(client: InternalClient): Promise<void> {
  for await (const { state } of client.states()) {
    if (state === 'connected' || state === 'connectedReadOnly') return
  }
  throw client.sharedSession.terminalError ?? new Error('The client is closed')
}

/**
 * Retries `attempt` until it succeeds, regardless of connection losses, of the retry policy and of a full offline
 * queue. Rejects with any other error, and when the client closes.
 */
export async function retryForever<T>(client: InternalClient, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (!ZooKeeperError.is(error) || !error.retryable || isAbandonedByCaller(error)) throw error
    }
    await backoff(client, tries)
    await waitUntilConnected(client)
  }
}
