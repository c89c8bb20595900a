import type { Transport } from '../platform.ts'

/** The factories of abort controllers, for `open` functions that accept a lighter one than the platform's. */
const factories = new WeakMap<object, () => AbortController>()

export function acceptAbortController(open: Transport['open'], make: () => AbortController): void {
  factories.set(open, make)
}

/** Returns the abort controller for a connection attempt over a transport. */
export function abortControllerFor(transport: Transport): AbortController {
  const { open } = transport as { readonly open: object }
  return factories.get(open)?.() ?? new AbortController()
}
