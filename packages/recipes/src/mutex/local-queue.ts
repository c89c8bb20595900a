import type { Client } from '@zabra/client/core'
import { abortError, onAbort } from '@zabra/client/recipe-kit'

const queues = new WeakMap<Client, Map<string, LocalQueue>>()

/** Lets one caller of this client proceed at a time, in order of arrival. */
class LocalQueue {
  readonly #waiting: (() => void)[] = []
  #isBusy = false

  get isBusy(): boolean {
    return this.#isBusy
  }

  async acquire(signal: AbortSignal | undefined, path: string): Promise<void> {
    if (!this.#isBusy) {
      this.#isBusy = true
      return
    }
    await new Promise<void>((resolve, reject) => {
      const stop = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1)
        reject(abortError(signal!.reason, { path, operation: 'acquire' }))
      }
      const go = (): void => {
        stopListening()
        resolve()
      }
      this.#waiting.push(go)
      const stopListening = onAbort(signal, stop)
    })
  }

  /** Lets all callers proceed that wait. */
  releaseAll(): void {
    for (const go of this.#waiting.splice(0)) go()
  }

  /** Lets the next caller proceed; returns true when there is none. */
  release(): boolean {
    const next = this.#waiting.shift()
    if (next !== undefined) next()
    else this.#isBusy = false
    return !this.#isBusy
  }
}

/** Returns whether a caller of this client waits for the lock at this path, or holds it. */
export const isBusy = (client: Client, path: string): boolean =>
  queues.get(client)?.get(path)?.isBusy ?? false

/**
 * Waits until no other caller of this client uses the lock. The returned function lets the next caller proceed. A
 * process with a thousand callers thus has one znode in the queue, and takes turns with other processes as one
 * contender.
 */
export async function enterLocalQueue(
  client: Client,
  path: string,
  signal: AbortSignal | undefined,
): Promise<() => void> {
  if (signal?.aborted) throw abortError(signal.reason, { path, operation: 'acquire' })
  let paths = queues.get(client)
  if (paths === undefined) {
    const created = new Map<string, LocalQueue>()
    queues.set(client, (paths = created))
    // A holder may never release after that. The callers that waited learn from their own call that the client is closed.
    void client.closed.then(() => created.forEach((queue) => queue.releaseAll()))
  }
  const all = paths
  let queue = all.get(path)
  if (queue === undefined) all.set(path, (queue = new LocalQueue()))
  const own = queue
  await own.acquire(signal, path)
  let left = false
  return () => {
    if (left) return
    left = true
    if (own.release() && all.get(path) === own) all.delete(path)
  }
}
