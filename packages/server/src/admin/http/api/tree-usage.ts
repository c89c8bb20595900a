import type { Traversal, Tree } from '../../../core/tree/index.ts'
import { FirstItems } from './first-items.ts'

/** Nodes that are visited in one step. */
const PER_STEP = 25
/** Nodes of a walk that are listed, the largest ones. */
export const MAX_LISTED = 10_000
/** Characters of their paths in all: a path may have a million of them, and is kept after its node is deleted. */
const MAX_CHARS = 1 << 22

/** What a node and its descendants hold, in bytes of data. */
export interface NodeUsage {
  readonly path: string
  readonly children: number
  readonly descendants: number
  readonly bytes: number
  /** With the data of the node itself. */
  readonly subtreeBytes: number
}

/** What a walk has found. */
export interface TreeUsage {
  readonly node: NodeUsage
  readonly depth: number
  /** The largest nodes of the levels down to `depth`, the largest first; of equal ones the one that was created first. */
  readonly nodes: readonly NodeUsage[]
  /** How many other nodes these levels have. */
  readonly omitted: number
}

/**
 * Measures the nodes down to `depth` levels below a path, in steps that yield empty strings. Returns undefined where there is no such
 * node. The tree changes meanwhile: each node counts as it is when the walk visits it.
 */
export function* treeUsage(
  tree: Tree,
  path: string,
  depth: number,
): Generator<string, TreeUsage | undefined> {
  const top = tree.find(path)
  if (top === -1) return undefined
  const walk = new UsageWalk(tree, depth)
  const cursor = tree.scan(top)
  const release = tree.addTraversal(walk)
  try {
    while (cursor.next(PER_STEP, (node) => walk.visit(node))) yield ''
    return yield* walk.end()
  } finally {
    cursor.close()
    release()
  }
}

interface Candidate extends NodeUsage {
  /** Which node of the walk it was. */
  readonly order: number
}

const byBytes = (a: Candidate, b: Candidate): number =>
  b.subtreeBytes - a.subtreeBytes || b.descendants - a.descendants || a.order - b.order

/** Adds up subtrees in pre-order: those of the ancestors of the node that was visited last are open. */
class UsageWalk implements Traversal {
  readonly #tree: Tree
  readonly #depth: number
  readonly #largest = new FirstItems<Candidate>(MAX_LISTED, byBytes)
  /** The open nodes from the top down, and what was found below each of them. All of them exist. */
  readonly #nodes: number[] = []
  readonly #descendants: number[] = []
  readonly #bytes: number[] = []
  #listed = 0
  #top: NodeUsage | undefined

  constructor(tree: Tree, depth: number) {
    this.#tree = tree
    this.#depth = depth
  }

  visit(node: number): void {
    const parent = this.#tree.store.parentOf(node)
    while (this.#nodes.length > 0 && this.#nodes.at(-1) !== parent) this.#close()
    this.#nodes.push(node)
    this.#descendants.push(0)
    this.#bytes.push(0)
  }

  /** Returns the result; undefined where the node at the top was deleted. */
  *end(): Generator<string, TreeUsage | undefined> {
    while (this.#nodes.length > 0) this.#close()
    if (this.#top === undefined) return undefined
    const nodes: NodeUsage[] = []
    let chars = 0
    for (const one of yield* this.#largest.takeSorted()) {
      chars += one.path.length
      if (chars > MAX_CHARS) break
      nodes.push(withoutOrder(one))
      if (nodes.length % PER_STEP === 0) yield ''
    }
    return { node: this.#top, depth: this.#depth, nodes, omitted: this.#listed - nodes.length }
  }

  added(): void {}

  /** An open node without children is the innermost one. */
  removing(node: number): void {
    if (this.#nodes.at(-1) === node) this.#pop()
  }

  applied(): void {}

  #close(): void {
    const tree = this.#tree
    const { store } = tree
    const level = this.#nodes.length - 1
    const node = this.#nodes[level]!
    const descendants = this.#descendants[level]!
    const bytes = Math.max(0, store.columns(node).length[store.slot(node)]!)
    const subtreeBytes = this.#bytes[level]! + bytes
    this.#pop()
    if (level > 0) {
      this.#descendants[level - 1]! += descendants + 1
      this.#bytes[level - 1]! += subtreeBytes
    }
    if (level > this.#depth) return
    const order = level === 0 ? 0 : this.#listed++
    const [path, children] = [tree.pathOf(node), tree.childCount(node)]
    const usage = { path, children, descendants, bytes, subtreeBytes, order }
    if (level === 0) this.#top = withoutOrder(usage)
    else this.#largest.add(usage)
  }

  #pop(): void {
    this.#nodes.pop()
    this.#descendants.pop()
    this.#bytes.pop()
  }
}

const withoutOrder = ({ path, children, descendants, bytes, subtreeBytes }: Candidate): NodeUsage => ({
  path,
  children,
  descendants,
  bytes,
  subtreeBytes,
})
