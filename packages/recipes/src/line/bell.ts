import type { Client, StateChange } from '@zabra/client/core'

/**
 * Wakes one waiter, which then looks again. It rings at every return of the connection, when the caller gives up, and when
 * told to; a ring that nobody waits for is kept.
 */
export class Bell {
  readonly #states: AsyncIterableIterator<StateChange>
  readonly #signal: AbortSignal | undefined
  #rung = false
  #wake: (() => void) | undefined
  #over = false
  readonly ring = (): void => {
    this.#rung = true
    this.#wake?.()
  }

  constructor(client: Client, signal?: AbortSignal) {
    this.#signal = signal
    this.#states = client.states()
    signal?.addEventListener('abort', this.ring, { once: true })
    void this.#listen()
  }

  /** The client is finished: no more states will come. */
  get over(): boolean {
    return this.#over
  }

  /** Resolves at the next ring, or at once if there was one since the last time. */
  async wait(): Promise<void> {
    if (!this.#rung) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#rung = false
    this.#wake = undefined
  }

  close(): void {
    this.#signal?.removeEventListener('abort', this.ring)
    void this.#states.return?.()
  }

  async #listen(): Promise<void> {
    let first = true
    for await (const { state } of this.#states) {
      // Between connections there is nothing to see; requests wait for the next one by themselves.
      if (!first && state !== 'suspended' && state !== 'connecting') this.ring()
      first = false
    }
    this.#over = true
    this.ring()
  }
}
