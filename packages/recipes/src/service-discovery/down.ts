/** When an instance counts as down for those who use it. */
export interface DownPolicy {
  /** So many errors (default 2) … */
  readonly errors?: number
  /** … within so many milliseconds (default 30 000), counted from now backwards. */
  readonly withinMs?: number
}

/** Remembers the errors that callers met. */
export class ErrorTracker {
  readonly #limit: number
  readonly #withinMs: number
  readonly #times = new Map<string, number[]>()

  constructor({ errors = 2, withinMs = 30_000 }: DownPolicy = {}) {
    this.#limit = errors
    this.#withinMs = withinMs
  }

  /** Somebody met one at a time. */
  record(id: string, now: number): void {
    // Older ones than the limit asks for tell nothing.
    const times = [...(this.#times.get(id) ?? []), now].slice(-this.#limit)
    this.#times.set(id, times)
  }

  isDown(id: string, now: number): boolean {
    const recent = this.#times.get(id)?.filter((time) => now - time < this.#withinMs) ?? []
    return recent.length >= this.#limit
  }

  /** Forgets those who are no longer there: whoever comes back begins anew. */
  retain(ids: ReadonlySet<string>): void {
    for (const id of this.#times.keys()) if (!ids.has(id)) this.#times.delete(id)
  }
}

/** Those whom a caller may be sent to. When all of them are down, so is our judgement: then all are. */
export function usableInstances<I extends { readonly id: string; readonly enabled: boolean }>(
  instances: readonly I[],
  isDown: (id: string) => boolean,
): readonly I[] {
  const enabled = instances.filter((instance) => instance.enabled)
  const up = enabled.filter(({ id }) => !isDown(id))
  return up.length > 0 ? up : enabled
}
