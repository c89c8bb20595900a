import type { AbortSignalLike } from '@zabra/runtime'
import type { Transport } from '../platform.ts'

/** An abort controller and signal in one, at a hundredth of the memory of an `AbortController`. */
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

/** The `open` functions that accept a `LightAbortController`. All others get an `AbortSignal` of the platform. */
const acceptsLightAbort = new WeakSet<object>()

export function acceptLightAbort(open: Transport['open']): void {
  acceptsLightAbort.add(open)
}

/** Returns the abort controller for a connection attempt over a transport. */
export function abortControllerFor(transport: Transport): { readonly signal: AbortSignal; abort(): void } {
  const { open } = transport as { readonly open: object }
  return acceptsLightAbort.has(open)
    ? (new LightAbortController() as unknown as AbortController)
    : new AbortController()
}
