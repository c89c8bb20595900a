import type { Client, OneShotWatch } from '@zabra/client/core'
import { onAbort } from '@zabra/client/recipe-kit'
import { onReconnect } from '../support/on-reconnect.ts'

/**
 * Wakes one waiter, which then reads again. Notifies on every reconnect, when the caller's signal aborts, and on
 * `notify()`; a notification without a waiter is kept.
 */
export class Notifier {
  readonly #unsubscribe: () => void
  readonly #stopListening: () => void
  #isNotified = false
  #wake: (() => void) | undefined
  #isClientFinished = false
  #watch: OneShotWatch | undefined
  readonly notify = (): void => {
    this.#isNotified = true
    this.#wake?.()
  }

  constructor(client: Client, signal?: AbortSignal) {
    this.#stopListening = onAbort(signal, this.notify)
    this.#unsubscribe = onReconnect(client, (over) => {
      this.#isClientFinished = over
      this.notify()
    })
  }

  /** True when the client is finished and no more states will come. */
  get isClientFinished(): boolean {
    return this.#isClientFinished
  }

  /** Resolves at the next notification, or at once if there was one since the last wait. */
  async wait(): Promise<void> {
    if (!this.#isNotified) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#isNotified = false
    this.#wake = undefined
  }

  /** Notifies when this watch fires or fails, until `stopWatching`. */
  notifyOn(watch: OneShotWatch): void {
    this.#watch = watch
    const onFired = (): void => {
      if (this.#watch === watch) this.notify()
    }
    watch.fired.then(onFired, onFired)
  }

  /**
   * Closes the watch without a notification: a caller that closes it in every round would otherwise never wait. It does not wait
   * for the servers, since a hanging connection must not hold a caller that has aborted.
   */
  stopWatching(): void {
    const watch = this.#watch
    this.#watch = undefined
    void watch?.close()
  }

  close(): void {
    this.stopWatching()
    this.#stopListening()
    this.#unsubscribe()
  }
}
