/** When an instance counts as down. */
export interface DownPolicy {
  /** Number of errors (default 2) … */
  readonly errors?: number | undefined
  /** … within this many milliseconds before now (default 30 000). */
  readonly withinMs?: number | undefined
}

/** Records the errors of instances. */
export class ErrorTracker {
  readonly #limit: number
  readonly #withinMs: number
  readonly #times = new Map<string, number[]>()

  constructor({ errors = 2, withinMs = 30_000 }: DownPolicy = {}) {
    this.#limit = errors
    this.#withinMs = withinMs
  }

  /** Records an error at the time `now`. */
  record(id: string, now: number): void {
    // Only the newest `limit` errors matter.
    const times = [...(this.#times.get(id) ?? []), now].slice(-this.#limit)
    this.#times.set(id, times)
  }

  isDown(id: string, now: number): boolean {
    const recent = this.#times.get(id)?.filter((time) => now - time < this.#withinMs) ?? []
    return recent.length >= this.#limit
  }

  /** Forgets instances that are gone: an instance that returns starts without errors. */
  retain(instances: readonly { readonly id: string }[]): void {
    if (this.#times.size === 0) return
    const ids = new Set(instances.map(({ id }) => id))
    for (const id of this.#times.keys()) if (!ids.has(id)) this.#times.delete(id)
  }
}

/**
 * Returns the instances that may be used. When all are down, returns all enabled ones: the problem is then more
 * likely local.
 */
export function usableInstances<I extends { readonly id: string; readonly enabled: boolean }>(
  instances: readonly I[],
  isDown: (id: string) => boolean,
): readonly I[] {
  const enabled = instances.filter((instance) => instance.enabled)
  const up = enabled.filter(({ id }) => !isDown(id))
  return up.length > 0 ? up : enabled
}
