/** Parts of a large transaction that are prepared, encoded, decoded or applied in one turn of the event loop. */
export const STEP = 100

/** Characters of a path that take as long as a part of a transaction. */
const CHARS_PER_PART = 256

/** Entries of access control lists that take as long as a part. */
const ENTRIES_PER_PART = 10

/** Returns as how many parts a part with a path counts. */
export const partsOf = (path: string): number => 1 + Math.floor(path.length / CHARS_PER_PART)

/** Counts the parts of a step. */
export class StepCounter {
  readonly #most: number
  #parts = 0

  constructor(most = STEP) {
    this.#most = most
  }

  /** Counts entries of access control lists that were looked at for the parts so far. */
  addAclEntries(entries: number): void {
    this.#parts += Math.floor(entries / ENTRIES_PER_PART)
  }

  /** Counts a part with a path. Returns whether it is the first one of another step. */
  begins(path: string): boolean {
    const parts = partsOf(path)
    const isFirst = this.#parts > 0 && this.#parts + parts > this.#most
    this.#parts = isFirst ? parts : this.#parts + parts
    return isFirst
  }
}

/** Whether parts with these paths are one step. */
export function isOneStep(paths: readonly string[]): boolean {
  const counter = new StepCounter()
  return !paths.some((path) => counter.begins(path))
}

/** Steps of one task that run in one turn of the event loop, unless they take a millisecond. */
export const STEPS_PER_TURN = 3

/** Leaves what follows to a later turn, before or after a step that takes some milliseconds. */
export function* endTurn(): Generator<void> {
  for (let step = 0; step < STEPS_PER_TURN; step++) yield
}

/** Runs all remaining steps of a task at once, and returns its result. */
export function runToEnd<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
