import type { Tree } from '../core/tree/index.ts'
import type { Digest, Zxid } from '../core/types.ts'

/** Every so many zxids the digest of the tree is kept, and so many of them, as the reference has it. */
const INTERVAL = 128
const KEPT = 1024

/** Digests of the tree, for comparing servers. */
export class DigestHistory {
  readonly #tree: Tree
  readonly entries: { readonly zxid: Zxid; readonly digest: Digest }[] = []

  constructor(tree: Tree) {
    this.#tree = tree
  }

  record(zxid: Zxid): void {
    if (zxid % INTERVAL === 0) this.#keep(zxid)
  }

  #keep(zxid: Zxid): void {
    const { digest } = this.#tree
    if (digest === undefined) return
    this.entries.push({ zxid, digest })
    if (this.entries.length > KEPT) this.entries.shift()
  }
}
