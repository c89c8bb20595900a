import type { Client } from '@zabra/client/core'

/**
 * Calls `call(false)` on every reconnect, since watch events may have been missed, and `call(true)` once when the
 * client is finished. Returns a function that unsubscribes.
 */
export function onReconnect(client: Client, call: (over: boolean) => void): () => void {
  const states = client.states()
  const listen = async (): Promise<void> => {
    // The current state is no change.
    await states.next()
    for await (const { state } of states) {
      // While disconnected there is nothing to read; requests wait for the next connection.
      if (state !== 'suspended' && state !== 'connecting') call(false)
    }
    call(true)
  }
  void listen()
  return () => void states.return?.()
}
