import { nameOf, type Writer } from '@zabra/protocol'
import type { Walker } from './contract.ts'
import { NONE } from './node-store.ts'
import type { Tree } from './tree.ts'

/** Writes the names of a node's children as a vector, in the order of their creation. */
export function writeChildren({ store }: Tree, node: number, writer: Writer): void {
  writer.int(store.columns(node).childCount[store.slot(node)]!)
  for (let child = store.firstChildOf(node); child !== NONE; child = store.nextOf(child))
    writer.string(nameOf(store.pathOf(child)))
}

/**
 * The paths of a node's children as they are now. That is quick, since nothing is copied but references: what is made of them
 * can take its time while the tree changes.
 */
export function childPaths({ store }: Tree, node: number): string[] {
  const paths: string[] = []
  for (let child = store.firstChildOf(node); child !== NONE; child = store.nextOf(child))
    paths.push(store.pathOf(child))
  return paths
}

/** How many nodes lie below a node, itself not counted; undefined when there are more than `most`. */
export function descendantCount({ store }: Tree, node: number, most: number): number | undefined {
  let count = 0
  for (let at = store.successor(node, node); at !== NONE; at = store.successor(at, node))
    if (++count > most) return undefined
  return count
}

/**
 * Counts the nodes below a path, some at a time while the tree changes. It goes through all nodes in the order of their
 * indices, so a change shows by its index whether its node was looked at already: `count` is right for the tree as it was in the
 * beginning, which is what the zxid of a reply speaks of.
 */
export class DescendantCount implements Walker {
  readonly #tree: Tree
  readonly #prefix: string
  readonly #release: () => void
  #next = 0
  /** Nodes that were added meanwhile, where nothing was looked at yet. */
  readonly #fresh = new Set<number>()
  count = 0

  constructor(tree: Tree, path: string) {
    this.#tree = tree
    this.#prefix = `${path}/`
    this.#release = tree.join(this)
  }

  /** Looks at up to so many nodes. False once all were looked at. */
  next(limit: number): boolean {
    const { store } = this.#tree
    const end = Math.min(this.#next + limit, store.used)
    for (; this.#next < end; this.#next++) {
      if (this.#fresh.delete(this.#next)) continue
      if (store.pathAt(this.#next)?.startsWith(this.#prefix) === true) this.count++
    }
    return this.#next < store.used
  }

  added(node: number): void {
    if (node >= this.#next) this.#fresh.add(node)
  }

  removing(node: number): void {
    if (node < this.#next || this.#fresh.delete(node)) return
    if (this.#tree.pathOf(node).startsWith(this.#prefix)) this.count++
  }

  applied(): void {}

  /** Lets the tree forget it. */
  done(): void {
    this.#release()
  }
}
