import type { Client, OneShotWatch } from '@zabra/client/core'
import { onReconnect } from '../support/on-reconnect.ts'

/**
 * Wakes one waiter, which then looks again. It rings at every return of the connection, when the caller gives up, and when
 * told to; a ring that nobody waits for is kept.
 */
export class Notifier {
  readonly #unsubscribe: () => void
  readonly #signal: AbortSignal | undefined
  #isNotified = false
  #wake: (() => void) | undefined
  #isClientFinished = false
  #watch: OneShotWatch | undefined
  readonly notify = (): void => {
    this.#isNotified = true
    this.#wake?.()
  }

  constructor(client: Client, signal?: AbortSignal) {
    this.#signal = signal
    signal?.addEventListener('abort', this.notify, { once: true })
    this.#unsubscribe = onReconnect(client, (over) => {
      this.#isClientFinished = over
      this.notify()
    })
  }

  /** The client is finished: no more states will come. */
  get isClientFinished(): boolean {
    return this.#isClientFinished
  }

  /** Resolves at the next ring, or at once if there was one since the last time. */
  async wait(): Promise<void> {
    if (!this.#isNotified) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#isNotified = false
    this.#wake = undefined
  }

  /** Rings when this watch tells something or fails, until `hush`. */
  notifyOn(watch: OneShotWatch): void {
    this.#watch = watch
    const told = (): void => {
      if (this.#watch === watch) this.notify()
    }
    watch.fired.then(told, told)
  }

  /** Closes the watch. That is no ring: whoever closes it on every round would never rest. */
  async stopWatching(): Promise<void> {
    const watch = this.#watch
    this.#watch = undefined
    await watch?.close()
  }

  close(): void {
    void this.stopWatching()
    this.#signal?.removeEventListener('abort', this.notify)
    this.#unsubscribe()
  }
}
