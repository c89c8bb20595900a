import type { Reader, Writer } from '@zabra/protocol'
import { Namespaces, ROOT } from './namespaces.ts'
import { NONE, PathIndex } from './path-index.ts'
import { Slabs } from './slabs.ts'

export { NONE }

/**
 * Stores all znodes in columns of numbers. A node is an index.
 *
 * Optimised: segments of typed arrays instead of objects, siblings as a linked list of indices, lookup by full path.
 * Why: an object per znode with boxed 64-bit numbers takes about 500 bytes and is traversed by every garbage collection;
 * this takes under 300 bytes with 100 bytes of data, and the collector sees only the paths. Segments avoid long pauses when
 * the store grows. The figure is "resident memory a znode" of apps/bench.
 * Rules: an index is valid until its node is removed.
 * Tested against a map of nodes, in `slabs.test.ts`, and the naive tree of `tree.model.test.ts`.
 */
const BITS = 13
const SIZE = 1 << BITS
const MASK = SIZE - 1
/** Room of a segment at first. The first one doubles up to `SIZE`: most trees are small. */
const FIRST_SIZE = 256

/** Bytes of a node in all columns, about. */
const NODE_BYTES = 100
/** Bytes of the stat that clients see. */
const STAT_BYTES = 68
/** Bytes that follow the data of a node in a snapshot: ACL id, stored stat, owner. */
const STORED_BYTES = 68

class NodeColumns {
  /** How many nodes have room. */
  #size = FIRST_SIZE
  czxid = new Float64Array(FIRST_SIZE)
  mzxid = new Float64Array(FIRST_SIZE)
  pzxid = new Float64Array(FIRST_SIZE)
  ctime = new Float64Array(FIRST_SIZE)
  mtime = new Float64Array(FIRST_SIZE)
  version = new Int32Array(FIRST_SIZE)
  cversion = new Int32Array(FIRST_SIZE)
  aversion = new Int32Array(FIRST_SIZE)
  acl = new Int32Array(FIRST_SIZE)
  /** CRC-32 of the path, which those of the children continue; 0 for the root. */
  pathCrc = new Uint32Array(FIRST_SIZE)
  /** CRC-32 of path and data. */
  crc = new Uint32Array(FIRST_SIZE)
  /** What the node adds to the digest of the tree. */
  nodeDigest = new Uint32Array(FIRST_SIZE)
  parent = new Int32Array(FIRST_SIZE)
  childCount = new Int32Array(FIRST_SIZE)
  firstChild = new Int32Array(FIRST_SIZE)
  next = new Int32Array(FIRST_SIZE)
  /** The previous sibling. For the first sibling, the last one. */
  previous = new Int32Array(FIRST_SIZE)
  slab = new Int32Array(FIRST_SIZE)
  offset = new Int32Array(FIRST_SIZE)
  /** Length of the data in bytes, -1 for null. */
  length = new Int32Array(FIRST_SIZE)
  /** The number of the first path element in `Namespaces`. */
  namespace = new Uint16Array(FIRST_SIZE)

  get size(): number {
    return this.#size
  }

  /** Makes room for more nodes. */
  grow(size: number): void {
    this.#size = size
    const columns = this as unknown as Record<string, Float64Array | Int32Array | Uint32Array | Uint16Array>
    for (const name of Object.keys(columns)) {
      const before = columns[name]!
      const grown = new (before.constructor as new (length: number) => typeof before)(size)
      grown.set(before)
      columns[name] = grown
    }
  }
}

export class NodeStore {
  readonly #segments: NodeColumns[] = []
  readonly #index: PathIndex
  /** Head of the free list, linked through `next`. An array would be copied as it grows. */
  #free = NONE
  readonly #slabs = new Slabs()
  #used = 0
  /** The node that `findFromReader` found last, its path then, and the hash of the path. */
  #found = NONE
  #foundPath = ''
  #foundHash = 0
  /** Whether it is certain that no node has the path that `findFromReader` has read last. */
  isAbsent = false
  count = 0
  /** Bytes of data of all nodes. */
  dataBytes = 0
  /** The most bytes of data that a node has ever had here, and the most children: what a read may cost. */
  largestData = 0
  mostChildren = 0
  /** Characters of all paths. */
  pathChars = 0
  readonly namespaces = new Namespaces()

  /** `hashKey` is the key of `PathIndex`. */
  constructor(hashKey = 0) {
    this.#index = new PathIndex(hashKey)
  }

  /** Returns the index of the node at a path, or `NONE`. `hash` is the hash of the path, where the caller has it. */
  find(path: string, hash?: number): number {
    const last = this.#found
    // A request looks the same path up several times, most often with the string of the node itself.
    if (last !== NONE && this.#index.pathAt(last) === path) return last
    return this.#index.find(path, hash)
  }

  /** Returns the hash of a path, for callers that look it up more than once. */
  hash(path: string): number {
    return path === this.#foundPath ? this.#foundHash : this.#index.hash(path)
  }

  /** Reads a path and returns its node. When no node has the path, returns `NONE` and does not advance the reader. */
  findFromReader(body: Reader): number {
    const before = body.offset
    const start = body.skipBuffer()
    const node = start === -1 ? NONE : this.#index.findAscii(body.view, start, body.offset)
    // The empty path is that of the root.
    this.isAbsent = node === NONE && start !== -1 && body.offset > start && this.#index.isLastAscii
    if (node === NONE) body.offset = before
    else {
      this.#found = node
      this.#foundPath = this.pathOf(node)
      this.#foundHash = this.#index.lastHash
    }
    return node
  }

  /** As `find`, without a lookup when the known index still has that path. */
  resolve({
    path,
    hash,
    index: at,
  }: {
    readonly path: string
    readonly hash: number
    readonly index: number
  }): number {
    return at !== NONE && this.pathAt(at) === path ? at : this.find(path, hash)
  }

  /** Returns the columns that hold a node, at the position `slot(node)`. */
  columns(node: number): NodeColumns {
    return this.#segments[node >> BITS]!
  }

  slot(node: number): number {
    return node & MASK
  }

  pathOf(node: number): string {
    return this.#index.pathAt(node)!
  }

  /** Upper bound of all indices that were ever used. */
  get used(): number {
    return this.#used
  }

  /** Bytes that nodes which were removed have left for others. */
  get freeBytes(): number {
    return (this.#used - this.count) * NODE_BYTES + this.#slabs.freeBytes
  }

  /** Returns the path of an index below `used`; undefined when no node has the index now. */
  pathAt(node: number): string | undefined {
    return this.#index.pathAt(node)
  }

  /** Adds a node as the last child, with all numbers 0 and null data. Returns `NONE`, without a change, when the path exists. */
  add(path: string, parent: number, hash?: number): number {
    const node = this.#free === NONE ? this.#used : this.#free
    if (!this.#index.add(path, node, hash)) return NONE
    if (this.#free === NONE) this.#used++
    else this.#free = this.nextOf(node)
    this.#begin(node, parent)
    this.pathChars += path.length
    const namespace = this.#namespaceFor(node, parent, path.length)
    this.columns(node).namespace[node & MASK] = namespace
    this.namespaces.add(namespace, 1, path.length)
    return node
  }

  /** Returns the number of the first path element of a node in `namespaces`; that of the root for the root. */
  namespaceOf(node: number): number {
    return this.columns(node).namespace[node & MASK]!
  }

  #namespaceFor(node: number, parent: number, length: number): number {
    if (parent === NONE) return ROOT
    const above = this.namespaceOf(parent)
    return above === ROOT ? this.namespaces.open(node, length) : above
  }

  #begin(node: number, parent: number): void {
    if (node >> BITS >= this.#segments.length) this.#segments.push(new NodeColumns())
    const s = this.columns(node)
    const i = node & MASK
    if (i >= s.size) s.grow(this.#segments.length > 1 ? SIZE : s.size * 2)
    s.czxid[i] = s.mzxid[i] = s.pzxid[i] = s.ctime[i] = s.mtime[i] = 0
    s.version[i] = s.cversion[i] = s.aversion[i] = s.acl[i] = s.childCount[i] = 0
    s.pathCrc[i] = s.crc[i] = s.nodeDigest[i] = 0
    s.firstChild[i] = s.next[i] = NONE
    s.previous[i] = node
    s.slab[i] = NONE
    s.offset[i] = 0
    s.length[i] = -1
    s.parent[i] = parent
    if (parent !== NONE) this.#link(node, parent)
    this.count++
  }

  /** Removes a node that has no children. */
  remove(node: number, hash?: number): void {
    const s = this.columns(node)
    const i = node & MASK
    this.#unlink(node)
    const pathChars = this.pathOf(node).length
    const dataBytes = Math.max(0, s.length[i]!)
    const namespace = s.namespace[i]!
    this.namespaces.add(namespace, -1, -pathChars - dataBytes)
    if (this.namespaceOf(s.parent[i]!) === ROOT) this.namespaces.close(namespace)
    this.pathChars -= pathChars
    this.dataBytes -= dataBytes
    this.#index.remove(node, hash)
    this.#slabs.free(s.slab[i]!, s.offset[i]!)
    s.next[i] = this.#free
    this.#free = node
    this.count--
  }

  setData(node: number, data: Uint8Array | null): void {
    const s = this.columns(node)
    const i = node & MASK
    const growth = (data?.length ?? 0) - Math.max(0, s.length[i]!)
    this.dataBytes += growth
    this.namespaces.add(s.namespace[i]!, 0, growth)
    const fits = data !== null && this.#slabs.overwrite(s.slab[i]!, s.offset[i]!, data)
    s.length[i] = data === null ? -1 : data.length
    if (s.length[i]! > this.largestData) this.largestData = s.length[i]!
    if (fits) return
    this.#slabs.free(s.slab[i]!, s.offset[i]!)
    s.slab[i] = NONE
    if (data === null) return
    this.#slabs.put(data)
    s.slab[i] = this.#slabs.slab
    s.offset[i] = this.#slabs.offset
  }

  /** Sets the data of a node just added: the bytes between two offsets. */
  setInitialData(node: number, bytes: DataView, start: number, end: number): void {
    const s = this.columns(node)
    const i = node & MASK
    this.dataBytes += end - start
    this.namespaces.add(s.namespace[i]!, 0, end - start)
    s.length[i] = end - start
    if (end - start > this.largestData) this.largestData = end - start
    this.#slabs.putRange(bytes, start, end)
    s.slab[i] = this.#slabs.slab
    s.offset[i] = this.#slabs.offset
  }

  /**
   * Writes the stat of a node that clients see. `owner` is the session of an ephemeral node, or 0.
   *
   * Optimised: claims all bytes at once and writes the numbers at their offsets.
   * Why: every read has a stat, and reserving space eleven times takes longer than writing it. Tested against `writeStat` of the
   * protocol, in `node-store.test.ts`.
   */
  writeStat(node: number, owner: bigint, writer: Writer): void {
    const c = this.columns(node)
    const i = node & MASK
    const at = writer.claim(STAT_BYTES)
    const { view } = writer
    const children = c.childCount[i]!
    long(view, at, c.czxid[i]!)
    long(view, at + 8, c.mzxid[i]!)
    long(view, at + 16, c.ctime[i]!)
    long(view, at + 24, c.mtime[i]!)
    view.setInt32(at + 32, c.version[i]!)
    // The stored cversion counts created children; clients see created plus removed ones.
    view.setInt32(at + 36, c.cversion[i]! * 2 - children)
    view.setInt32(at + 40, c.aversion[i]!)
    setOwner(view, at + 44, owner)
    view.setInt32(at + 52, Math.max(0, c.length[i]!))
    view.setInt32(at + 56, children)
    long(view, at + 60, c.pzxid[i]!)
  }

  /** Writes the fields that follow the data of a node in a snapshot, in the same way, since a snapshot has them for every node. */
  writeStored(node: number, owner: bigint, writer: Writer): void {
    const c = this.columns(node)
    const i = node & MASK
    const at = writer.claim(STORED_BYTES)
    const { view } = writer
    long(view, at, c.acl[i]!)
    long(view, at + 8, c.czxid[i]!)
    long(view, at + 16, c.mzxid[i]!)
    long(view, at + 24, c.ctime[i]!)
    long(view, at + 32, c.mtime[i]!)
    view.setInt32(at + 40, c.version[i]!)
    view.setInt32(at + 44, c.cversion[i]!)
    view.setInt32(at + 48, c.aversion[i]!)
    setOwner(view, at + 52, owner)
    long(view, at + 60, c.pzxid[i]!)
  }

  /** Returns a view of a node's data, valid until the next change, or null. */
  data(node: number): Uint8Array | null {
    const s = this.columns(node)
    const i = node & MASK
    return s.length[i]! < 0 ? null : this.#slabs.view(s.slab[i]!, s.offset[i]!, s.length[i]!)
  }

  /** Returns a node's data where they are in an array of their own, which never changes; else undefined. */
  ownArrayOf(node: number): Uint8Array | undefined {
    return this.#slabs.ownArray(this.columns(node).slab[node & MASK]!)
  }

  /** Returns the buffer that holds a node's data, from `columns().offset` on. */
  dataViewOf(node: number): DataView {
    return this.#slabs.viewOf(this.columns(node).slab[node & MASK]!)
  }

  parentOf(node: number): number {
    return this.columns(node).parent[node & MASK]!
  }

  firstChildOf(node: number): number {
    return this.columns(node).firstChild[node & MASK]!
  }

  nextOf(node: number): number {
    return this.columns(node).next[node & MASK]!
  }

  /** Returns the next node in pre-order inside the subtree of `top`; `NONE` at the end. */
  successor(node: number, top: number): number {
    const child = this.firstChildOf(node)
    return child === NONE ? this.successorBehind(node, top) : child
  }

  /** As `successor`, but skips the descendants of the node. */
  successorBehind(node: number, top: number): number {
    for (let at = node; at !== top; at = this.parentOf(at)) {
      const next = this.nextOf(at)
      if (next !== NONE) return next
    }
    return NONE
  }

  #link(node: number, parent: number): void {
    const p = this.columns(parent)
    const pi = parent & MASK
    const first = p.firstChild[pi]!
    const children = ++p.childCount[pi]!
    if (children > this.mostChildren) this.mostChildren = children
    if (first === NONE) {
      p.firstChild[pi] = node
      return
    }
    const last = this.columns(first).previous[first & MASK]!
    this.columns(last).next[last & MASK] = node
    this.columns(node).previous[node & MASK] = last
    this.columns(first).previous[first & MASK] = node
  }

  #unlink(node: number): void {
    const s = this.columns(node)
    const parent = s.parent[node & MASK]!
    const p = this.columns(parent)
    const pi = parent & MASK
    const next = s.next[node & MASK]!
    const previous = s.previous[node & MASK]!
    const first = p.firstChild[pi]!
    p.childCount[pi]!--
    if (first === node) {
      p.firstChild[pi] = next
      if (next !== NONE) this.columns(next).previous[next & MASK] = previous
      return
    }
    this.columns(previous).next[previous & MASK] = next
    const after = next === NONE ? first : next
    this.columns(after).previous[after & MASK] = previous
  }
}

/** Writes an integer from -2^53 to 2^53. `setInt32` keeps the lower 32 bits of each half. */
function long(view: DataView, at: number, value: number): void {
  view.setInt32(at, Math.floor(value / 0x1_0000_0000))
  view.setInt32(at + 4, value)
}

/** Writes an owner. V8 calls a function for `setBigInt64`, and most nodes have no owner. */
function setOwner(view: DataView, at: number, owner: bigint): void {
  if (owner === 0n) {
    view.setInt32(at, 0)
    view.setInt32(at + 4, 0)
  } else view.setBigInt64(at, owner)
}
