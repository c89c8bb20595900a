import type { Clock } from '@zabra/runtime'

/** The most items of one turn of the event loop, and the most milliseconds for them. */
export const ITEMS_PER_TURN = 100
export const SLICE_MS = 2

export interface SliceTurns {
  /** The most items of one turn; a hundred by default. */
  readonly most?: number
  /** Reads the monotonic clock. */
  now(): number
  /** Runs the next slice in a later turn. */
  runLater(slice: () => void): void
  /** Called after the last item. */
  done(): void
}

/**
 * Calls `handle` for each item, until it returns false: for some in each turn of the event loop, the first ones and at least one of
 * them now. Items of a `Set` or `Map` that are deleted before their slice are left out.
 */
export function inSlices<T>(
  items: Iterable<T>,
  handle: (item: T) => boolean | void,
  turns: SliceTurns,
): void {
  const iterator = items[Symbol.iterator]()
  const slice = (): void => {
    const until = turns.now() + SLICE_MS
    for (let left = turns.most ?? ITEMS_PER_TURN; left > 0; left--) {
      const next = iterator.next()
      if (next.done === true || handle(next.value) === false) return turns.done()
      if (turns.now() >= until) break
    }
    turns.runLater(slice)
  }
  slice()
}

/** Does the same on a clock. Resolves after the last item, or rejects with what `handle` or `items` throws. */
export function inTurns<T>(
  items: Iterable<T>,
  handle: (item: T) => void,
  clock: Pick<Clock, 'monotonic' | 'immediate'>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const runLater = (slice: () => void): void =>
      clock.immediate(() => {
        try {
          slice()
        } catch (error) {
          reject(error)
        }
      })
    inSlices(items, handle, { now: () => clock.monotonic(), runLater, done: resolve })
  })
}
