import type { Abortable } from '@zabra/runtime'
import type { Transport } from '../types.ts'

/** What ends a wait, as an `AbortController` does, for a hundredth of what that allocates. */
export class Abort implements Abortable {
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

/** The ways to open a connection that are content with an `Abort`. Those of others get a signal of the platform. */
const content = new WeakSet<object>()

export function contentWithAbort(open: Transport['open']): void {
  content.add(open)
}

/** What a transport is told with that nobody waits any more. */
export function abortFor(transport: Transport): { readonly signal: AbortSignal; abort(): void } {
  const { open } = transport as { readonly open: object }
  return content.has(open) ? (new Abort() as unknown as AbortController) : new AbortController()
}
