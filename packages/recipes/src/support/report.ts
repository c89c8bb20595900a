import type { Client, Instrumentation } from '@zabra/client/core'

/** Calls the hook of the instrumentation for recipes. Its errors are ignored: they must not break the recipe. */
export function report(
  { instrumentation }: Client,
  info: Parameters<NonNullable<Instrumentation['recipe']>>[0],
): void {
  try {
    instrumentation?.recipe?.(info)
  } catch {
    // As documented.
  }
}
