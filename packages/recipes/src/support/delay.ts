import type { Client } from '@zabra/client/core'
import { onAbort } from '@zabra/client/recipe-kit'
import { onReconnect } from './on-reconnect.ts'

/** Resolves after `ms` milliseconds, or as soon as `signal` aborts or the client ends. */
export function delay(client: Client, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let stopListening = (): void => {}
    const end = (): void => {
      cancel()
      unsubscribe()
      stopListening()
      resolve()
    }
    const cancel = client.platform.clock.after(ms, 'delay of a recipe', end)
    const unsubscribe = onReconnect(client, (over) => {
      if (over) end()
    })
    stopListening = onAbort(signal, end)
  })
}
