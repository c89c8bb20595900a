import { Histogram } from '../histogram.ts'
import { MAX_NAME, REST, ROOT } from './namespaces.ts'
import type { NodeStore } from './node-store.ts'

/** First path elements whose traffic is measured each for itself: the first ones that have any. */
const MAX_MEASURED = 50
/** The label of all others. A first path element of this name is one of them, since no two series may have the same labels. */
const OTHERS = 'other'
/** The bytes that a read of a znode counts beside its path and its data. */
const STAT_BYTES = 68

/** The bytes of each read and each write below a first path element, and the writes that quotas refuse. */
export interface MeasuredNamespace {
  /** Without its slash, as in Apache ZooKeeper. */
  readonly name: string
  readonly read: Histogram
  readonly written: Histogram
  /** Writes that a hard quota has refused. */
  refused: number
}

/** Counts a read of a path: of its stat and `bytes` more. */
export function countRead(measured: MeasuredNamespace | undefined, path: string, bytes: number): void {
  measured?.read.add(path.length + bytes + STAT_BYTES)
}

/**
 * Measures the bytes that clients read and write below each first path element (`read_per_namespace` and `write_per_namespace`). What is
 * measured goes on with another tree: it lasts as long as the process.
 */
export class NamespaceTraffic {
  /** The place of a first path element in it, plus 1, is its label in `Namespaces`. */
  readonly #measured: MeasuredNamespace[] = []
  readonly #labels = new Map<string, number>()

  constructor() {
    this.#measure(OTHERS)
  }

  get measured(): readonly MeasuredNamespace[] {
    return this.#measured
  }

  /** Counts a read of a node: of its stat and `bytes` of data, or of names of children. */
  read(store: NodeStore, node: number, bytes: number): void {
    countRead(this.of(store, node), store.pathOf(node), bytes)
  }

  /** Counts a write to a node, with `bytes` of data. */
  written(store: NodeStore, node: number, bytes: number): void {
    this.of(store, node)?.written.add(store.pathOf(node).length + bytes)
  }

  /** Counts a write that the quota of a path refuses, whose nodes may be absent. */
  refused(path: string): void {
    if (path === '/') return
    const end = path.indexOf('/', 1)
    const top = end === -1 ? path : path.slice(0, end)
    this.#measured[this.#labelNamed(top.length > MAX_NAME ? OTHERS : top.slice(1)) - 1]!.refused++
  }

  /** Begins a new part of the window over which metrics report percentiles. */
  rotate(): void {
    for (const { read, written } of this.#measured) {
      read.rotate()
      written.rotate()
    }
  }

  /** Returns where the traffic of a node is counted; undefined for the root. */
  of(store: NodeStore, node: number): MeasuredNamespace | undefined {
    const number = store.namespaceOf(node)
    if (number === ROOT) return undefined
    const { labels } = store.namespaces
    if (labels[number] === 0) labels[number] = this.#labelOf(store, number)
    return this.#measured[labels[number]! - 1]
  }

  #labelOf(store: NodeStore, number: number): number {
    if (number === REST) return this.#labels.get(OTHERS)!
    return this.#labelNamed(store.pathOf(store.namespaces.topOf(number)).slice(1))
  }

  #labelNamed(name: string): number {
    const known = this.#labels.get(name)
    if (known !== undefined) return known
    return this.#measured.length > MAX_MEASURED ? this.#labels.get(OTHERS)! : this.#measure(name)
  }

  #measure(name: string): number {
    const label = this.#measured.push({ name, read: new Histogram(), written: new Histogram(), refused: 0 })
    this.#labels.set(name, label)
    return label
  }
}
