import type { AbortSignalLike } from '@zabra/runtime'

/**
 * An abort controller and signal in one, at a hundredth of the memory of an `AbortController`. Pages do not load it: they have few
 * clients.
 */
export class LightAbortController implements AbortSignalLike {
  aborted = false
  reason: unknown
  #listener: (() => void) | undefined

  get signal(): this {
    return this
  }

  abort(): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = new Error('The attempt was cancelled')
    this.#listener?.()
  }

  /** Supports one listener. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listener = listener
  }

  removeEventListener(): void {
    this.#listener = undefined
  }
}
