import { crc32, crc32Text } from '@zabra/protocol'
import type { Digest, Zxid } from '../types.ts'
import { NONE, type NodeStore } from './node-store.ts'
import type { OwnerIndex } from './owners.ts'

/**
 * Returns the CRC-32 of a path, computed from that of its parent over the name alone. The root counts as an empty path, so the
 * CRC of its children starts at 0.
 */
export function pathCrc(path: string, parentPath: string, parent: number): number {
  const isTop = parentPath === '/'
  const from = isTop ? 0 : parentPath.length
  const previous = isTop ? 0 : parent
  if (path.length < LONG) return crc32Text(path, from, previous)
  if (path !== last.path || from !== last.from || previous !== last.previous)
    last = { path, from, previous, crc: crc32Text(path, from, previous) }
  return last.crc
}

/** From so many characters on, the last result is kept: a creation needs it twice, when it is prepared and when it is applied. */
const LONG = 1024
let last = { path: '', from: 0, previous: 0, crc: 0 }

/** Returns the CRC-32 of path and data, the first part of a node's digest. `path` is the result of `pathCrc`. */
export function crcPrefix(path: number, data: Uint8Array | null): number {
  return data === null ? path : crc32(data, 0, data.length, path)
}

/** Returns whether a node is excluded from the digest. */
export const isExcludedFromDigest = (path: string): boolean => path.startsWith('/zookeeper/')

/** The digest of a tree while its nodes change, one at a time: a sum modulo 2^64 of what each node adds. */
export class DigestSum implements Digest {
  hi = 0
  lo = 0
  /** The node that is changing, however the caller identifies it, and its fields before the change. */
  #changing: object | number | undefined
  readonly #was = new StatFields()

  set(value: Digest): void {
    this.hi = value.hi
    this.lo = value.lo
  }

  /** Adds an unsigned 32-bit number. */
  add(value: number): void {
    const lo = this.lo + value
    if (lo >= 0x1_0000_0000) {
      this.lo = lo - 0x1_0000_0000
      this.hi = (this.hi + 1) >>> 0
    } else {
      this.lo = lo
    }
  }

  subtract(value: number): void {
    const lo = this.lo - value
    if (lo < 0) {
      this.lo = lo + 0x1_0000_0000
      this.hi = (this.hi - 1) >>> 0
    } else {
      this.lo = lo
    }
  }

  /**
   * Subtracts what a node adds before it changes, which is `counted`. The caller stores the fields of the node in the result. Its
   * czxid, ctime and owner must stay the same until `endChange`.
   */
  beginChange(node: object | number, counted: number): StatFields {
    this.subtract(counted)
    this.#changing = node
    return this.#was
  }

  /** Returns whether the change of this node has begun; else the node is new. */
  endChange(node: object | number): boolean {
    const hasBegun = node === this.#changing
    this.#changing = undefined
    return hasBegun
  }

  /** Returns what the node adds whose change has ended, if it added `counted` before. */
  updated(counted: number, now: StatFields): number {
    return updateStatDigest(counted, this.#was, now)
  }

  /** Returns a copy of the current value. */
  value(): Digest {
    return { hi: this.hi, lo: this.lo }
  }
}

export const sameDigest = (a: Digest, b: Digest): boolean => a.hi === b.hi && a.lo === b.lo

/**
 * Computes what a node adds to the tree's digest (`DigestCalculator`): the CRC-32 of its path, its data and the 60 bytes of its
 * stat, without writing these bytes.
 *
 * Optimised: CRC-32 is an affine function: for inputs of one length, the CRCs differ by the exclusive or of a term per differing
 * byte, and a table holds the terms. So the CRC of a stat is computed from its fields in any order, and the CRC after a change
 * follows from the CRC before and the fields that changed.
 * Why: every write needs it twice. Tested against `plainNodeDigest` in `testing/plain-digest.ts`.
 */

/** The fields of a node that can change during its life. */
export class StatFields {
  /** CRC-32 of path and data. */
  crcPrefix = 0
  mzxid = 0
  pzxid = 0
  mtime = 0
  version = 0
  cversion = 0
  aversion = 0
}

export function copyStatFields(from: StatFields, to: StatFields): void {
  to.crcPrefix = from.crcPrefix
  to.mzxid = from.mzxid
  to.pzxid = from.pzxid
  to.mtime = from.mtime
  to.version = from.version
  to.cversion = from.cversion
  to.aversion = from.aversion
}

export const { updateStatDigest, statDigest } = withTable()

/** A function, since bundlers turn constants of a module into variables, which cost a lookup each time. */
function withTable() {
  /** Offsets of the fields in the 60 bytes. The CRC of path and data affects the first four. */
  const CZXID = 0
  const MZXID = 8
  const PZXID = 16
  const CTIME = 24
  const MTIME = 32
  const VERSION = 40
  const CVERSION = 44
  const AVERSION = 48
  const OWNER = 52
  const BYTES = 60
  const table = makeTable(BYTES)
  /** A stat of zeros after an empty prefix. */
  const BLANK = new StatFields()
  const BLANK_COUNTED = crc32(new Uint8Array(BYTES))
  const ownerView = new DataView(new ArrayBuffer(8))

  /** Returns what a node adds after a change, if it added `counted` before. Path, czxid, ctime and owner must be the same. */
  function updateStatDigest(counted: number, was: StatFields, now: StatFields): number {
    let crc = counted
    if (now.crcPrefix !== was.crcPrefix) crc ^= prefix(now.crcPrefix ^ was.crcPrefix)
    if (now.mzxid !== was.mzxid)
      crc ^= long(MZXID, upper(now.mzxid) ^ upper(was.mzxid), now.mzxid ^ was.mzxid)
    if (now.pzxid !== was.pzxid)
      crc ^= long(PZXID, upper(now.pzxid) ^ upper(was.pzxid), now.pzxid ^ was.pzxid)
    if (now.mtime !== was.mtime)
      crc ^= long(MTIME, upper(now.mtime) ^ upper(was.mtime), now.mtime ^ was.mtime)
    if (now.version !== was.version) crc ^= int(VERSION, now.version ^ was.version)
    if (now.cversion !== was.cversion) crc ^= int(CVERSION, now.cversion ^ was.cversion)
    if (now.aversion !== was.aversion) crc ^= int(AVERSION, now.aversion ^ was.aversion)
    return crc >>> 0
  }

  /** Returns what a node adds: that of the blank stat, updated to the fields of the node. */
  function statDigest(now: StatFields, czxid: number, ctime: number, owner: bigint): number {
    const changed = updateStatDigest(BLANK_COUNTED, BLANK, now)
    const crc = changed ^ long(CZXID, upper(czxid), czxid | 0) ^ long(CTIME, upper(ctime), ctime | 0)
    if (owner === 0n) return crc >>> 0
    ownerView.setBigInt64(0, owner)
    return (crc ^ long(OWNER, ownerView.getInt32(0), ownerView.getInt32(4))) >>> 0
  }

  /** Returns the term of four bytes at an offset, big-endian. */
  function int(at: number, value: number): number {
    return (
      table[(at << 8) | (value >>> 24)]! ^
      table[((at + 1) << 8) | ((value >>> 16) & 0xff)]! ^
      table[((at + 2) << 8) | ((value >>> 8) & 0xff)]! ^
      table[((at + 3) << 8) | (value & 0xff)]!
    )
  }

  /** Returns the term of the preceding CRC, which acts like four bytes, little-endian. */
  function prefix(crc: number): number {
    return (
      table[crc & 0xff]! ^
      table[0x100 | ((crc >>> 8) & 0xff)]! ^
      table[0x200 | ((crc >>> 16) & 0xff)]! ^
      table[0x300 | (crc >>> 24)]!
    )
  }

  const long = (at: number, high: number, low: number): number => int(at, high) ^ int(at + 4, low)

  /** Returns the upper 32 bits of a number. Bitwise operators take the lower 32 bits by themselves. */
  const upper = (value: number): number => Math.floor(value / 0x1_0000_0000) | 0

  return { updateStatDigest, statDigest }
}

/** Returns the terms of all byte values at all offsets, 256 per offset. */
function makeTable(bytes: number): Int32Array {
  const made = new Int32Array(bytes * 256)
  const last = (bytes - 1) * 256
  for (let value = 0; value < 256; value++)
    made[last | value] = crc32(Uint8Array.of(value)) ^ crc32(Uint8Array.of(0))
  // The term of a byte one position earlier is its term shifted by one more byte.
  for (let at = last - 256; at >= 0; at -= 256) {
    for (let value = 0; value < 256; value++) {
      const behind = made[(at + 256) | value]!
      made[at | value] = made[last | (behind & 0xff)]! ^ (behind >>> 8)
    }
  }
  return made
}

/**
 * Maintains the digest of a tree while its nodes change. Each node stores what it adds to the sum, so that subtracting it is
 * cheap. Not used when digests are disabled.
 */
export class TreeDigest {
  readonly #store: NodeStore
  readonly #owners: OwnerIndex
  readonly #sum = new DigestSum()
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
    const counted = this.#store.columns(node).nodeDigest[this.#store.slot(node)]!
    this.#read(node, this.#sum.beginChange(node, counted))
  }

  /** Stores and adds what a node adds after a change or its creation. */
  afterChange(node: number, path: string): void {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    const hasBegun = this.#sum.endChange(node)
    c.nodeDigest[i] = isExcludedFromDigest(path) ? 0 : this.#count(node, hasBegun)
    this.#sum.add(c.nodeDigest[i]!)
  }

  #count(node: number, isKnown: boolean): number {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    this.#read(node, this.#now)
    if (isKnown) return this.#sum.updated(c.nodeDigest[i]!, this.#now)
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

/** Apache ZooKeeper records the digests at the same zxids, and keeps as many. A power of two. */
const ZXID_INTERVAL = 128
const MAX_ENTRIES = 1024

/** Records digests of the tree, for comparing servers. */
export class DigestHistory {
  readonly #tree: { readonly digest: Digest | undefined }
  readonly entries: { readonly zxid: Zxid; readonly digest: Digest }[] = []

  constructor(tree: { readonly digest: Digest | undefined }) {
    this.#tree = tree
  }

  /** Records the digest after a transaction if its zxid is a multiple of 128. */
  record(zxid: Zxid): void {
    // The remainder of a number above 2^31 is a call of `fmod`.
    if ((zxid & (ZXID_INTERVAL - 1)) === 0) this.#add(zxid)
  }

  #add(zxid: Zxid): void {
    const { digest } = this.#tree
    if (digest === undefined) return
    this.entries.push({ zxid, digest })
    if (this.entries.length > MAX_ENTRIES) this.entries.shift()
  }
}
