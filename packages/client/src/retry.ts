import type { ZooKeeperClient } from './client.ts'
import { isAbandonedByCaller, RecoverableError } from './errors.ts'
import { randomFraction } from './servers/host-provider.ts'

const BASE_MS = 100
const CAP_MS = 10_000

/** Resolves a while after a failed try, the longer the more there were. */
export function backoff(view: ZooKeeperClient, tries: number): Promise<void> {
  const { clock, random } = view.platform
  const wait = randomFraction(random) * Math.min(CAP_MS, BASE_MS * 2 ** Math.min(tries, 20))
  return new Promise((resolve) => void clock.after(wait, 'backoff', resolve))
}

/** Resolves when a connection stands. Rejects when the client is finished. */
async function waitUntilConnected(view: ZooKeeperClient): Promise<void> {
  for await (const { state } of view.states()) {
    if (state === 'connected' || state === 'connectedReadOnly') return
  }
  throw view.sharedSession.terminalError ?? new Error('The client is finished')
}

/**
 * Tries until there is an answer, whatever becomes of connections, of the policy for retries and of the room for what
 * waits. Rejects with what is no matter of connections, and when the client is finished.
 */
export async function retryForever<T>(view: ZooKeeperClient, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof RecoverableError) || isAbandonedByCaller(error)) throw error
    }
    await backoff(view, tries)
    await waitUntilConnected(view)
  }
}
