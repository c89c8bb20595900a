import type { Client } from '@zabra/client/core'
import { onReconnect } from './on-reconnect.ts'

/** Resolves after `ms` milliseconds, or as soon as `signal` aborts or the client ends. */
export function delay(client: Client, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      unsubscribe()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = client.platform.clock.after(ms, 'delay of a recipe', end)
    const unsubscribe = onReconnect(client, (over) => {
      if (over) end()
    })
    signal?.addEventListener('abort', end, { once: true })
    if (signal?.aborted) end()
  })
}
