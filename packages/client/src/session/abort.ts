import type { Transport } from '../platform.ts'

/** What makes the abort controllers for `open` functions that accept others than those of the platform. */
const makers = new WeakMap<object, () => AbortController>()

export function acceptAbortController(open: Transport['open'], make: () => AbortController): void {
  makers.set(open, make)
}

/** Returns the abort controller for a connection attempt over a transport. */
export function abortControllerFor(transport: Transport): AbortController {
  const { open } = transport as { readonly open: object }
  return makers.get(open)?.() ?? new AbortController()
}
