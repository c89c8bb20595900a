import { nameOf, type Writer } from '@zabra/protocol'
import type { Traversal } from './types.ts'
import { NONE } from './node-store.ts'
import type { Tree } from './tree.ts'

/** Writes the names of a node's children as a vector, in the order of their creation. */
export function writeChildren({ store }: Tree, node: number, writer: Writer): void {
  writer.int(store.columns(node).childCount[store.slot(node)]!)
  for (let child = store.firstChildOf(node); child !== NONE; child = store.nextOf(child))
    writer.string(nameOf(store.pathOf(child)))
}

/** How many nodes lie below a node, itself not counted; undefined when there are more than `most`. */
export function countDescendants({ store }: Tree, node: number, most: number): number | undefined {
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
export class DescendantCounter implements Traversal {
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
    this.#release = tree.addTraversal(this)
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
  close(): void {
    this.#release()
  }
}

/** Children in one list. */
const LISTED = 2000

/**
 * The paths of a node's children as they are in the beginning, some taken at a time while the tree changes. Children stand in the
 * order of their creation, so that those that are new stand behind all that are to be taken; one that goes before its turn is taken
 * then.
 */
export class ChildPathsCursor implements Traversal {
  /** Lists of those that were taken: one of a million would be copied as it grows. */
  readonly lists: string[][] = []
  /** All of them. */
  readonly count: number
  readonly #tree: Tree
  readonly #node: number
  readonly #release: () => void
  #next: number
  /** Children that are to be taken. */
  #left: number
  /** A bit for each node, set for those that were taken. */
  readonly #taken: Uint8Array
  /** Children that are new. */
  readonly #fresh = new Set<number>()
  #chars = 0

  constructor(tree: Tree, node: number) {
    const { store } = tree
    this.#tree = tree
    this.#node = node
    this.#next = store.firstChildOf(node)
    this.count = this.#left = tree.childCount(node)
    this.#taken = new Uint8Array((store.used >> 3) + 1)
    this.#release = tree.addTraversal(this)
  }

  /** Bytes of the names behind a count, if all are taken and ASCII. */
  get bytes(): number {
    return this.#chars + this.count * 4
  }

  /** Takes up to so many. False once all are taken. */
  next(limit: number): boolean {
    for (let i = 0; i < limit && this.#left > 0; i++) {
      const child = this.#next
      this.#take(child)
      this.#taken[child >> 3]! |= 1 << (child & 7)
      this.#next = this.#tree.store.nextOf(child)
    }
    return this.#left > 0
  }

  #take(child: number): void {
    const path = this.#tree.pathOf(child)
    if ((this.count - this.#left) % LISTED === 0) this.lists.push([])
    this.lists.at(-1)!.push(path)
    this.#chars += nameOf(path).length
    this.#left--
  }

  added(node: number): void {
    if (this.#left > 0 && this.#isChild(node)) this.#fresh.add(node)
  }

  removing(node: number): void {
    if (this.#left === 0 || !this.#isChild(node) || this.#fresh.delete(node)) return
    const bit = 1 << (node & 7)
    if ((this.#taken[node >> 3]! & bit) !== 0) {
      // Its index may be that of another node next.
      this.#taken[node >> 3]! &= ~bit
      return
    }
    if (node === this.#next) this.#next = this.#tree.store.nextOf(node)
    this.#take(node)
  }

  applied(): void {}

  /** Lets the tree forget it. */
  close(): void {
    this.#release()
  }

  #isChild(node: number): boolean {
    return this.#tree.store.parentOf(node) === this.#node
  }
}
