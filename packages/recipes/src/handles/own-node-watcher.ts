import {
  FatalError,
  NoNodeError,
  RecoverableError,
  type Bytes,
  type Client,
  type OneShotWatch,
} from '@zabra/client/core'

export interface OwnNodeListener {
  /** What it holds: once when the watch is armed, then after each change. */
  onData?(data: Bytes): void
  /** Somebody has removed it, or it went with its owner's consent. */
  onDeleted(): void
  /** It cannot be watched; `error` says why. */
  onWatchFailed?(error: unknown): void
}

/**
 * Watches one's own znode until it is gone or its session is over. Removing the znode spends the watch, so nothing has to
 * be taken back.
 */
export class OwnNodeWatcher {
  readonly #client: Client
  readonly path: string
  #listener: OwnNodeListener
  /** Whether somebody has written to it since the watch was first armed. */
  hasChanged = false

  constructor(client: Client, path: string, listener: OwnNodeListener) {
    this.#client = client
    this.path = path
    this.#listener = listener
    void this.#follow()
  }

  /** Somebody else hears from now on. */
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
      // The end of a session or of the client is told by the client's states.
      else if (!(error instanceof FatalError)) this.#listener.onWatchFailed?.(error)
    }
  }

  /** Reads and watches, through all that passes. */
  async #setWatch(): Promise<OneShotWatch> {
    for (;;) {
      try {
        return await this.#client.watchOnce(this.path, 'data', { retry: {} })
      } catch (error) {
        if (!(error instanceof RecoverableError)) throw error
        await waitForConnection(this.#client)
      }
    }
  }
}

/** Resolves at the next state in which requests are answered, or with the end of the client. */
export async function waitForConnection(client: Client): Promise<void> {
  for await (const { state } of client.states()) {
    if (state === 'connected' || state === 'connectedReadOnly') return
  }
}
