import type { Zxid } from '../types.ts'
import type { Traversal } from './types.ts'
import { NONE } from './node-store.ts'
import type { Tree } from './tree.ts'

/**
 * Walks a tree, parents before children, while the tree changes. A node that is removed before its turn is left out; one
 * that is added may or may not be met. Replaying the log from the snapshot's zxid repairs both.
 */
export class TreeCursor implements Traversal {
  readonly #tree: Tree
  readonly #release: () => void
  #next: number
  /** The zxid of the tree when the walk reached its end, and before that the last one applied. */
  lastZxid: Zxid

  constructor(tree: Tree) {
    this.#tree = tree
    this.#release = tree.addTraversal(this)
    this.#next = tree.find('/')
    this.lastZxid = tree.lastZxid
  }

  get isFinished(): boolean {
    return this.#next === NONE
  }

  /** Visits up to `limit` nodes. Returns false once there are no more. */
  next(limit: number, visit: (node: number) => void): boolean {
    for (let i = 0; i < limit && this.#next !== NONE; i++) {
      const node = this.#next
      this.#next = this.#tree.store.successor(node, NONE)
      visit(node)
    }
    return this.#next !== NONE
  }

  added(): void {}

  removing(node: number): void {
    if (node === this.#next) this.#next = this.#tree.store.successorBehind(node, NONE)
  }

  applied(zxid: Zxid): void {
    this.lastZxid = zxid
  }

  /** Lets the tree forget the cursor. */
  close(): void {
    this.#release()
  }
}
