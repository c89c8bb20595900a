import type { Tree } from '../core/tree/index.ts'
import type { Digest, Zxid } from '../core/types.ts'

/** Apache ZooKeeper records the digests at the same zxids, and keeps as many. */
const ZXID_INTERVAL = 128
const MAX_ENTRIES = 1024

/** Records digests of the tree, for comparing servers. */
export class DigestHistory {
  readonly #tree: Tree
  readonly entries: { readonly zxid: Zxid; readonly digest: Digest }[] = []

  constructor(tree: Tree) {
    this.#tree = tree
  }

  /** Records the digest after a transaction if its zxid is a multiple of 128. */
  record(zxid: Zxid): void {
    if (zxid % ZXID_INTERVAL === 0) this.#add(zxid)
  }

  #add(zxid: Zxid): void {
    const { digest } = this.#tree
    if (digest === undefined) return
    this.entries.push({ zxid, digest })
    if (this.entries.length > MAX_ENTRIES) this.entries.shift()
  }
}
