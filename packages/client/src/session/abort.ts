import type { AbortSignalLike } from '@zabra/runtime'
import type { Transport } from '../types.ts'

/** What ends a wait, as an `AbortController` does, for a hundredth of what that allocates. */
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
    this.reason = new Error('The attempt was given up')
    this.#listener?.()
  }

  /** Only one listens. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listener = listener
  }

  removeEventListener(): void {
    this.#listener = undefined
  }
}

/** The ways to open a connection that are content with an `LightAbortController`. Those of others get a signal of the platform. */
const acceptsLightAbort = new WeakSet<object>()

export function acceptLightAbort(open: Transport['open']): void {
  acceptsLightAbort.add(open)
}

/** What a transport is told with that nobody waits any more. */
export function abortControllerFor(transport: Transport): { readonly signal: AbortSignal; abort(): void } {
  const { open } = transport as { readonly open: object }
  return acceptsLightAbort.has(open)
    ? (new LightAbortController() as unknown as AbortController)
    : new AbortController()
}
