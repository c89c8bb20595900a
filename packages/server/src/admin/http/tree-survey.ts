import type { Clock } from '@zabra/runtime'
import { TextMap } from '../../core/text-map.ts'
import type { Tree } from '../../core/tree/index.ts'

/** Nodes that are visited in one turn of the event loop: about a tenth of a millisecond. */
const NODES_PER_TURN = 1000
/** The least time between two surveys, and how many times longer than a survey itself. */
const INTERVAL_MS = 60_000
const PAUSE_FACTOR = 200
/** First path elements that are reported; the rest is `other`. */
const MAX_NAMESPACES = 50
/** First path elements that are kept until the largest are known. */
const MAX_KEPT = 10_000

export interface NamespaceSize {
  nodes: number
  bytes: number
}

/** What a walk of the whole tree has found. Bytes are those of data and paths. */
export interface TreeReport {
  /** The largest first path elements, and `other` for the rest. */
  readonly namespaces: readonly (readonly [name: string, size: NamespaceSize])[]
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
  const root = store.find('/')
  const sizes = new TextMap<NamespaceSize>(tree.options.hashKey)
  const other: NamespaceSize = { nodes: 0, bytes: 0 }
  let largestNodeBytes = 0
  let mostChildren = 0
  const visit = (node: number): void => {
    mostChildren = Math.max(mostChildren, tree.childCount(node))
    const dataBytes = Math.max(0, store.columns(node).length[store.slot(node)]!)
    largestNodeBytes = Math.max(largestNodeBytes, dataBytes)
    if (node === root) return
    const path = tree.pathOf(node)
    const end = path.indexOf('/', 1)
    const name = end === -1 ? path : path.slice(0, end)
    let size = sizes.get(name)
    if (size === undefined) {
      size = sizes.size < MAX_KEPT ? { nodes: 0, bytes: 0 } : other
      if (size !== other) sizes.set(name, size)
    }
    size.nodes++
    size.bytes += dataBytes + path.length
  }
  const cursor = tree.scan()
  try {
    while (cursor.next(NODES_PER_TURN, visit)) yield
  } finally {
    cursor.close()
  }
  const bySize = [...sizes].toSorted(([, one], [, next]) => next.bytes - one.bytes)
  for (const [, { nodes, bytes }] of bySize.slice(MAX_NAMESPACES)) {
    other.nodes += nodes
    other.bytes += bytes
  }
  const namespaces: [string, NamespaceSize][] = bySize.slice(0, MAX_NAMESPACES)
  if (other.nodes > 0) namespaces.push(['other', other])
  return { namespaces, largestNodeBytes, mostChildren }
}
