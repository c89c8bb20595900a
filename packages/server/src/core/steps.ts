/** Parts of a large transaction that are prepared, encoded, decoded or applied in one turn of the event loop. */
export const STEP = 100

/** Runs all remaining steps of a task at once, and returns its result. */
export function runToEnd<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
