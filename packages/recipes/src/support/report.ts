import type { Client, Instrumentation } from '@zabra/client/core'
import { callObserver } from '@zabra/client/recipe-kit'

/** Calls the hook of the instrumentation for recipes. */
export function report(
  { instrumentation }: Client,
  info: Parameters<NonNullable<Instrumentation['recipe']>>[0],
): void {
  callObserver(() => instrumentation?.recipe?.(info))
}
