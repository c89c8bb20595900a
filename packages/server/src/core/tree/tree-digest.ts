import type { Digest } from '../types.ts'
import { crcPrefix, DigestSum, isExcludedFromDigest, pathCrc } from './digest.ts'
import { NONE, type NodeStore } from './node-store.ts'
import type { OwnerIndex } from './owners.ts'
import { StatFields, updateStatDigest, statDigest } from './stat-digest.ts'

/**
 * Keeps the digest of a tree while its nodes change. What each node adds is kept with it, so that taking it out again costs
 * nothing. A tree without digests does not ask for any of this.
 */
export class TreeDigest {
  readonly #store: NodeStore
  readonly #owners: OwnerIndex
  readonly #sum = new DigestSum()
  /** The node that is changing, and its numbers before that. */
  #node = NONE
  readonly #was = new StatFields()
  readonly #now = new StatFields()

  constructor(store: NodeStore, owners: OwnerIndex) {
    this.#store = store
    this.#owners = owners
  }

  /** A copy that no longer changes. */
  value(): Digest {
    return this.#sum.value()
  }

  matches({ hi, lo }: Digest): boolean {
    return hi === this.#sum.hi && lo === this.#sum.lo
  }

  /** Begins anew; what nodes have added is forgotten. */
  clear(): void {
    this.#sum.hi = this.#sum.lo = 0
  }

  /** Takes the checksums of a new node's path and of its data; `known` is that of both, where somebody knows it. */
  hash(node: number, path: string, data: Uint8Array | null, known?: number): void {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    const parent = c.parent[i]!
    if (parent !== NONE) {
      const before = this.#store.columns(parent).pathCrc[this.#store.slot(parent)]!
      c.pathCrc[i] = pathCrc(path, this.#store.pathOf(parent), before)
    }
    c.crc[i] = known ?? crcPrefix(c.pathCrc[i]!, data)
  }

  /** Takes the checksum of a node's new data. */
  hashData(node: number, data: Uint8Array | null, known?: number): void {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    c.crc[i] = known ?? crcPrefix(c.pathCrc[i]!, data)
  }

  /** Puts in what a new node adds, whose columns say it already. */
  add(counted: number): void {
    this.#sum.add(counted)
  }

  /** Takes out what a node adds, for good or until `came` or `changed` puts in what it adds then. */
  subtract(node: number): void {
    this.#sum.subtract(this.#store.columns(node).nodeDigest[this.#store.slot(node)]!)
  }

  /** The same, of a node that stays: by `changed` it has the czxid, ctime and owner that it has now. */
  beforeChange(node: number): void {
    this.subtract(node)
    this.#node = node
    this.#read(node, this.#was)
  }

  afterChange(node: number, path: string): void {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    c.nodeDigest[i] = isExcludedFromDigest(path) ? 0 : this.#count(node)
    this.#node = NONE
    this.#sum.add(c.nodeDigest[i]!)
  }

  #count(node: number): number {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    this.#read(node, this.#now)
    if (node === this.#node) return updateStatDigest(c.nodeDigest[i]!, this.#was, this.#now)
    return statDigest(this.#now, c.czxid[i]!, c.ctime[i]!, this.#owners.of(node))
  }

  #read(node: number, to: StatFields): void {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    to.crcPrefix = c.crc[i]!
    to.mzxid = c.mzxid[i]!
    to.pzxid = c.pzxid[i]!
    to.mtime = c.mtime[i]!
    to.version = c.version[i]!
    to.cversion = c.cversion[i]!
    to.aversion = c.aversion[i]!
  }
}
