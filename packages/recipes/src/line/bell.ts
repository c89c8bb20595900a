import type { Client, OneShotWatch } from '@zabra/client/core'
import { onReturn } from '../waiting/on-return.ts'

/**
 * Wakes one waiter, which then looks again. It rings at every return of the connection, when the caller gives up, and when
 * told to; a ring that nobody waits for is kept.
 */
export class Bell {
  readonly #forget: () => void
  readonly #signal: AbortSignal | undefined
  #rung = false
  #wake: (() => void) | undefined
  #over = false
  #watch: OneShotWatch | undefined
  readonly ring = (): void => {
    this.#rung = true
    this.#wake?.()
  }

  constructor(client: Client, signal?: AbortSignal) {
    this.#signal = signal
    signal?.addEventListener('abort', this.ring, { once: true })
    this.#forget = onReturn(client, (over) => {
      this.#over = over
      this.ring()
    })
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

  /** Rings when this watch tells something or fails, until `hush`. */
  heed(watch: OneShotWatch): void {
    this.#watch = watch
    const told = (): void => {
      if (this.#watch === watch) this.ring()
    }
    watch.fired.then(told, told)
  }

  /** Closes the watch. That is no ring: whoever closes it on every round would never rest. */
  async hush(): Promise<void> {
    const watch = this.#watch
    this.#watch = undefined
    await watch?.close()
  }

  close(): void {
    void this.hush()
    this.#signal?.removeEventListener('abort', this.ring)
    this.#forget()
  }
}
