import type { Zxid } from '../types.ts'
import { NONE } from './node-store.ts'
import type { Traversable, Traversal } from './types.ts'

/**
 * Walks a tree, or the subtree of a node, parents before children, while the tree changes. A node that is removed before the cursor
 * reaches it is left out; one that is added meanwhile may or may not be visited. Replaying the log from the zxid of the snapshot corrects
 * both.
 */
export class TreeCursor implements Traversal {
  readonly #tree: Traversable
  readonly #top: number
  readonly #unregister: () => void
  #next: number
  /** The zxid of the last transaction applied when the cursor reached the end; until then, of the last one applied. */
  lastZxid: Zxid

  constructor(tree: Traversable, top: number) {
    this.#tree = tree
    this.#top = this.#next = top
    this.#unregister = tree.addTraversal(this)
    this.lastZxid = tree.lastZxid
  }

  get isFinished(): boolean {
    return this.#next === NONE
  }

  /** Visits up to `limit` nodes. Returns false once there are no more. */
  next(limit: number, visit: (node: number) => void): boolean {
    for (let i = 0; i < limit && this.#next !== NONE; i++) {
      const node = this.#next
      this.#next = this.#tree.store.successor(node, this.#top)
      visit(node)
    }
    return this.#next !== NONE
  }

  added(): void {}

  removing(node: number): void {
    if (node === this.#next) this.#next = this.#tree.store.successorBehind(node, this.#top)
  }

  applied(zxid: Zxid): void {
    this.lastZxid = zxid
  }

  /** Stops the notifications from the tree. */
  close(): void {
    this.#unregister()
  }
}
