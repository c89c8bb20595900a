import { NoNodeError, ZooKeeperError, type Bytes, type Client, type OneShotWatch } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'

export interface OwnNodeListener {
  /** Receives the data of the znode, once when the watch is set and after each change. */
  onData?(data: Bytes): void
  /** Called when the znode was deleted, by another client or by its owner. */
  onDeleted(): void
  /** Called when the watch cannot be set, with the error. */
  onWatchFailed?(error: unknown): void
}

/**
 * Watches a znode of this client until it is deleted or its session ends. The deletion consumes the watch, so none
 * has to be removed.
 */
export class OwnNodeWatcher {
  readonly #client: Client
  readonly path: string
  #listener: OwnNodeListener
  /** True when the data changed since the watch was first set. */
  hasChanged = false

  constructor(client: Client, path: string, listener: OwnNodeListener) {
    this.#client = withoutTimeout(client)
    this.path = path
    this.#listener = listener
    void this.#follow()
  }

  /** Replaces the listener. */
  setListener(listener: OwnNodeListener): void {
    this.#listener = listener
  }

  async #follow(): Promise<void> {
    try {
      for (;;) {
        const watch = await this.#setWatch()
        if (watch.data !== undefined) this.#listener.onData?.(watch.data)
        const { type } = await watch.fired
        if (type === 'nodeDeleted') return this.#listener.onDeleted()
        this.hasChanged = true
      }
    } catch (error) {
      if (error instanceof NoNodeError) this.#listener.onDeleted()
      // The client's states report the end of the session or of the client.
      else if (!ZooKeeperError.is(error) || error.scope === 'request') this.#listener.onWatchFailed?.(error)
    }
  }

  /** Reads the znode and sets the watch; retries through lost connections. */
  async #setWatch(): Promise<OneShotWatch> {
    for (;;) {
      try {
        return await this.#client.watchOnce(this.path, 'data', { retry: {} })
      } catch (error) {
        if (!ZooKeeperError.is(error) || !error.retryable) throw error
        await waitForConnection(this.#client)
      }
    }
  }
}

/** Resolves when the client is connected (read-only included), or when it ends. */
export async function waitForConnection(client: Client): Promise<void> {
  for await (const { state } of client.states()) {
    if (state === 'connected' || state === 'connectedReadOnly') return
  }
}
