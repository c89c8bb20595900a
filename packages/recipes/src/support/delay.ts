import type { Client } from '@zabra/client/core'

/** Resolves after `ms` milliseconds, or as soon as `signal` aborts. */
export function delay(client: Client, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = client.platform.clock.after(ms, 'delay of a recipe', end)
    signal?.addEventListener('abort', end, { once: true })
    if (signal?.aborted) end()
  })
}
