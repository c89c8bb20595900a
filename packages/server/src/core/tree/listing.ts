import { nameOf, type Writer } from '@zabra/protocol'
import { beginsWith } from '../begins-with.ts'
import { NumberSet } from '../number-map.ts'
import type { SessionId } from '../types.ts'
import type { Traversal } from './types.ts'
import { countRead, type MeasuredNamespace } from './namespace-traffic.ts'
import { NONE } from './node-store.ts'
import type { Tree } from './tree.ts'

/** Bytes of names that are collected or written at once: names may be as long as a request. */
export const NAME_BYTES_AT_ONCE = 1 << 18

/**
 * Writes the names of a node's children as a vector, in the order of their creation, and counts the read. Returns false, with a part of
 * them written and nothing counted, when they are too long to be written at once.
 */
export function writeChildren({ store, options }: Tree, node: number, writer: Writer): boolean {
  const end = writer.length + NAME_BYTES_AT_ONCE
  writer.int(store.columns(node).childCount[store.slot(node)]!)
  let chars = 0
  for (let child = store.firstChildOf(node); child !== NONE; child = store.nextOf(child)) {
    if (writer.length > end) return false
    const name = nameOf(store.pathOf(child))
    chars += name.length
    writer.string(name)
  }
  options.traffic?.read(store, node, chars)
  return true
}

/** Returns the number of descendants of a node; undefined if there are more than `most`. */
export function countDescendants({ store }: Tree, node: number, most: number): number | undefined {
  let count = 0
  for (let at = store.successor(node, node); at !== NONE; at = store.successor(at, node))
    if (++count > most) return undefined
  return count
}

/** Characters of a path that are compared in the time that a visit takes. */
const COMPARED_CHARS = 512

/**
 * Counts the descendants of a path in steps, while the tree changes. Visits nodes in the order of their indices, so the index of
 * a changed node tells whether it was visited already. `count` is that of the tree at the start, which the zxid of the reply
 * refers to.
 */
export class DescendantCounter implements Traversal {
  readonly #tree: Tree
  readonly #prefix: string
  readonly #release: () => void
  #next = 0
  /** Nodes that were added since the start, at indices not visited yet. */
  readonly #fresh = new NumberSet()
  count = 0

  constructor(tree: Tree, path: string) {
    this.#tree = tree
    this.#prefix = `${path}/`
    this.#release = tree.addTraversal(this)
  }

  /** Visits up to `limit` nodes, fewer below a long path. Returns false once all are visited. */
  next(limit: number): boolean {
    const { store } = this.#tree
    const visited = Math.ceil(limit / (1 + this.#prefix.length / COMPARED_CHARS))
    const end = Math.min(this.#next + visited, store.used)
    for (; this.#next < end; this.#next++) {
      if (this.#fresh.delete(this.#next)) continue
      if (this.#isDescendant(store.pathAt(this.#next))) this.count++
    }
    return this.#next < store.used
  }

  added(node: number): void {
    if (node >= this.#next) this.#fresh.add(node)
  }

  removing(node: number): void {
    if (node < this.#next || this.#fresh.delete(node)) return
    if (this.#isDescendant(this.#tree.pathOf(node))) this.count++
  }

  applied(): void {}

  /** Stops the notifications from the tree. */
  close(): void {
    this.#release()
  }

  #isDescendant(path: string | undefined): boolean {
    return path !== undefined && beginsWith(path, this.#prefix)
  }
}

/** Most children in one list. */
const LIST_LENGTH = 2000

/**
 * Collects the paths of a node's children in steps, as they were at the start, while the tree changes. Children are in the order
 * of their creation, so new ones come after all that are collected; one that is removed before its turn is collected then.
 */
export class ChildPathsCursor implements Traversal {
  /** The paths, in several lists: one list of a million would be copied as it grows. */
  readonly lists: string[][] = []
  /** Number of children at the start. */
  readonly count: number
  readonly #tree: Tree
  readonly #node: number
  readonly #release: () => void
  /** The node may be gone when the read is counted. */
  readonly #measured: MeasuredNamespace | undefined
  readonly #path: string
  #next: number
  /** Children not collected yet. */
  #left: number
  /** One bit per node, set for the collected ones. */
  readonly #collected: Uint8Array
  /** Children created since the start. */
  readonly #fresh = new NumberSet()
  #chars = 0

  constructor(tree: Tree, node: number) {
    const { store } = tree
    this.#tree = tree
    this.#node = node
    this.#measured = tree.options.traffic?.of(store, node)
    this.#path = store.pathOf(node)
    this.#next = store.firstChildOf(node)
    this.count = this.#left = tree.childCount(node)
    this.#collected = new Uint8Array((store.used >> 3) + 1)
    this.#release = tree.addTraversal(this)
  }

  /** Bytes of the encoded names, once all are collected, if they are ASCII. */
  get bytes(): number {
    return this.#chars + this.count * 4
  }

  /** Collects up to `limit` children, fewer where their names are long. Returns false once all are collected. */
  next(limit: number): boolean {
    const mostChars = this.#chars + NAME_BYTES_AT_ONCE
    for (let i = 0; i < limit && this.#left > 0 && this.#chars < mostChars; i++) {
      const child = this.#next
      this.#collect(child)
      this.#collected[child >> 3]! |= 1 << (child & 7)
      this.#next = this.#tree.store.nextOf(child)
    }
    return this.#left > 0
  }

  #collect(child: number): void {
    const path = this.#tree.pathOf(child)
    if ((this.count - this.#left) % LIST_LENGTH === 0) this.lists.push([])
    this.lists.at(-1)!.push(path)
    this.#chars += nameOf(path).length
    this.#left--
  }

  /** Counts a read of the list. Call it once all children are collected. */
  countRead(): void {
    countRead(this.#measured, this.#path, this.#chars)
  }

  added(node: number): void {
    if (this.#left > 0 && this.#isChild(node)) this.#fresh.add(node)
  }

  removing(node: number): void {
    if (this.#left === 0 || !this.#isChild(node) || this.#fresh.delete(node)) return
    const bit = 1 << (node & 7)
    if ((this.#collected[node >> 3]! & bit) !== 0) {
      // Another node may get its index.
      this.#collected[node >> 3]! &= ~bit
      return
    }
    if (node === this.#next) this.#next = this.#tree.store.nextOf(node)
    this.#collect(node)
  }

  applied(): void {}

  /** Stops the notifications from the tree. */
  close(): void {
    this.#release()
  }

  #isChild(node: number): boolean {
    return this.#tree.store.parentOf(node) === this.#node
  }
}

/**
 * Collects the paths of a session's ephemerals that a filter accepts in steps, as they were at the start, while the tree changes. One that
 * is removed before its turn is collected then.
 */
export class EphemeralPathsCursor implements Traversal {
  /** The paths, in several lists: one list of a million would be copied as it grows. */
  readonly lists: string[][] = [[]]
  readonly #tree: Tree
  readonly #session: SessionId
  readonly #accepts: (path: string) => boolean
  readonly #release: () => void
  readonly #nodes: Iterator<number>
  /** Ephemerals not looked at yet. */
  #left: number
  /** One bit per node, set for those looked at. */
  readonly #seen: Uint8Array
  /** Ephemerals created since the start. */
  readonly #fresh = new NumberSet()
  #count = 0
  #acceptedChars = 0
  #chars = 0

  constructor(tree: Tree, session: SessionId, accepts: (path: string) => boolean) {
    const nodes = tree.owners.ofSession(session)
    this.#tree = tree
    this.#session = session
    this.#accepts = accepts
    this.#nodes = nodes[Symbol.iterator]()
    this.#left = nodes.size
    this.#seen = new Uint8Array((tree.store.used >> 3) + 1)
    this.#release = tree.addTraversal(this)
  }

  /** Number of the collected paths. */
  get count(): number {
    return this.#count
  }

  /** Bytes of the encoded paths, once all are collected, if they are ASCII. */
  get bytes(): number {
    return this.#acceptedChars + this.#count * 4
  }

  /** Looks at up to `limit` ephemerals, fewer where their paths are long. Returns false once all have been looked at. */
  next(limit: number): boolean {
    const mostChars = this.#chars + NAME_BYTES_AT_ONCE
    for (let i = 0; i < limit && this.#left > 0 && this.#chars < mostChars; i++) {
      const node = this.#nodes.next().value as number
      if (this.#fresh.has(node)) continue
      this.#collect(node)
      this.#seen[node >> 3]! |= 1 << (node & 7)
    }
    return this.#left > 0
  }

  #collect(node: number): void {
    const path = this.#tree.pathOf(node)
    this.#left--
    this.#chars += path.length
    if (!this.#accepts(path)) return
    if (this.lists.at(-1)!.length === LIST_LENGTH) this.lists.push([])
    this.lists.at(-1)!.push(path)
    this.#count++
    this.#acceptedChars += path.length
  }

  added(node: number): void {
    if (this.#left > 0 && this.#isOwned(node)) this.#fresh.add(node)
  }

  removing(node: number): void {
    if (this.#left === 0 || !this.#isOwned(node) || this.#fresh.delete(node)) return
    const bit = 1 << (node & 7)
    // Another node may get its index.
    if ((this.#seen[node >> 3]! & bit) !== 0) this.#seen[node >> 3]! &= ~bit
    else this.#collect(node)
  }

  applied(): void {}

  /** Stops the notifications from the tree. */
  close(): void {
    this.#release()
  }
  #isOwned(node: number): boolean {
    return this.#tree.owners.of(node) === this.#session
  }
}
