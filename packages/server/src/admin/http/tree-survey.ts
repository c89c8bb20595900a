import type { Clock } from '@zabra/runtime'
import type { Tree } from '../../core/tree/index.ts'

/** Nodes that are visited in one turn of the event loop: about a tenth of a millisecond. */
const NODES_PER_TURN = 1000
/** The least time between two surveys, and how many times longer than a survey itself. */
const INTERVAL_MS = 60_000
const PAUSE_FACTOR = 200

/** What a walk of the whole tree has found. */
export interface TreeReport {
  readonly largestNodeBytes: number
  readonly mostChildren: number
}

/** Walks the tree for the metrics, in slices, at most once a minute and only while someone scrapes them. */
export class TreeSurvey {
  /** The last complete walk; undefined before the first. */
  report: TreeReport | undefined
  readonly #clock: Pick<Clock, 'monotonic' | 'immediate'>
  #isRunning = false
  #dueAt = -Infinity

  constructor(clock: Pick<Clock, 'monotonic' | 'immediate'>) {
    this.#clock = clock
  }

  /** Begins a walk if the last one is old. */
  refresh(tree: Tree): void {
    if (this.#isRunning || this.#clock.monotonic() < this.#dueAt) return
    this.#isRunning = true
    const survey = surveyOf(tree)
    let tookMs = 0
    const step = (): void => {
      const begun = this.#clock.monotonic()
      const { done, value } = survey.next()
      const now = this.#clock.monotonic()
      tookMs += now - begun
      if (done !== true) return this.#clock.immediate(step)
      this.report = value
      this.#isRunning = false
      this.#dueAt = now + Math.max(INTERVAL_MS, PAUSE_FACTOR * tookMs)
    }
    this.#clock.immediate(step)
  }
}

function* surveyOf(tree: Tree): Generator<void, TreeReport> {
  const { store } = tree
  let largestNodeBytes = 0
  let mostChildren = 0
  const visit = (node: number): void => {
    mostChildren = Math.max(mostChildren, tree.childCount(node))
    largestNodeBytes = Math.max(largestNodeBytes, store.columns(node).length[store.slot(node)]!)
  }
  const cursor = tree.scan()
  try {
    while (cursor.next(NODES_PER_TURN, visit)) yield
  } finally {
    cursor.close()
  }
  return { largestNodeBytes, mostChildren }
}
