import type { Clock, System } from '@zabra/runtime'

/** The part of the heap above which clients get no more of it: neither new sessions nor larger data. */
const FULL_SHARE = 0.9
/** Bytes of a process beside its heap and buffers: code, stacks, caches of the allocator. Measured with Node 20: 55 to 80 MB. */
const BESIDE_BYTES = 80 << 20
/** Milliseconds between two looks at the memory. */
const CHECK_MS = 100

/** What the process uses, in bytes, and whether its heap is nearly full. */
interface Use {
  readonly used: number
  readonly external: number
  readonly isFull: boolean
  /** Whether a process that takes more is likely to be ended. */
  readonly leavesNone: boolean
}

/** Looks at the memory of the process ten times a second at most. */
export class HeapUse {
  readonly #system: Pick<System, 'heap' | 'memoryLimits'>
  #checkedAt = 0
  #use: Use | undefined

  constructor(system: Pick<System, 'heap' | 'memoryLimits'>) {
    this.#system = system
  }

  /** Returns the use at `now`, on the monotonic clock, or up to 100 ms before. */
  at(now: number): Use {
    if (this.#use !== undefined && now - this.#checkedAt < CHECK_MS) return this.#use
    this.#checkedAt = now
    const { used, external } = this.#system.heap?.() ?? { used: 0, external: 0 }
    const limits = this.#system.memoryLimits?.() ?? { heap: Infinity, process: Infinity }
    const isFull = used > limits.heap * FULL_SHARE
    const leavesNone = isFull || used + external + BESIDE_BYTES > limits.process * FULL_SHARE
    return (this.#use = { used, external, isFull, leavesNone })
  }
}

/** Returns a check for work that builds a tree: throws `tooLarge()` once a process that takes more memory is likely to be ended. */
export function memoryCheck(
  {
    clock,
    system,
  }: { readonly clock: Pick<Clock, 'monotonic'>; readonly system: Pick<System, 'heap' | 'memoryLimits'> },
  tooLarge: () => Error,
): () => void {
  const use = new HeapUse(system)
  return () => {
    if (use.at(clock.monotonic()).leavesNone) throw tooLarge()
  }
}
