import type { Client } from '@zabra/client/core'

/**
 * Calls at every return of the connection, since events may be missing then, and once when the client is finished, with
 * true. Returns what ends that.
 */
export function onReconnect(client: Client, call: (over: boolean) => void): () => void {
  const states = client.states()
  const listen = async (): Promise<void> => {
    // The state of now is no news.
    await states.next()
    for await (const { state } of states) {
      // Between connections there is nothing to see; requests wait for the next one by themselves.
      if (state !== 'suspended' && state !== 'connecting') call(false)
    }
    call(true)
  }
  void listen()
  return () => void states.return?.()
}
