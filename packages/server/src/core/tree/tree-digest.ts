import type { Digest } from '../types.ts'
import { crcPrefix, DigestSum, isExcludedFromDigest, pathCrc } from './digest.ts'
import { NONE, type NodeStore } from './node-store.ts'
import type { OwnerIndex } from './owners.ts'
import { StatFields, updateStatDigest, statDigest } from './stat-digest.ts'

/**
 * Maintains the digest of a tree while its nodes change. Each node stores what it adds to the sum, so that subtracting it is
 * cheap. Not used when digests are disabled.
 */
export class TreeDigest {
  readonly #store: NodeStore
  readonly #owners: OwnerIndex
  readonly #sum = new DigestSum()
  /** The node that is changing, and its fields before the change. */
  #node = NONE
  readonly #was = new StatFields()
  readonly #now = new StatFields()

  constructor(store: NodeStore, owners: OwnerIndex) {
    this.#store = store
    this.#owners = owners
  }

  /** Returns a copy of the current value. */
  value(): Digest {
    return this.#sum.value()
  }

  matches({ hi, lo }: Digest): boolean {
    return hi === this.#sum.hi && lo === this.#sum.lo
  }

  /** Resets the sum to 0. */
  clear(): void {
    this.#sum.hi = this.#sum.lo = 0
  }

  /** Stores the checksums of a new node's path and data. `known` is the checksum of both, where the caller has it. */
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

  /** Stores the checksum of a node's new data. */
  hashData(node: number, data: Uint8Array | null, known?: number): void {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    c.crc[i] = known ?? crcPrefix(c.pathCrc[i]!, data)
  }

  /** Adds a new node, which stores this value already. */
  add(counted: number): void {
    this.#sum.add(counted)
  }

  /** Subtracts a node that is removed or about to change. */
  subtract(node: number): void {
    this.#sum.subtract(this.#store.columns(node).nodeDigest[this.#store.slot(node)]!)
  }

  /** Subtracts a node before it changes. Its czxid, ctime and owner must stay the same until `afterChange`. */
  beforeChange(node: number): void {
    this.subtract(node)
    this.#node = node
    this.#read(node, this.#was)
  }

  /** Stores and adds what a node adds after a change or its creation. */
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
