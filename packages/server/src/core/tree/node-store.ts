import type { Reader } from '@zabra/protocol'
import { NONE, PathIndex } from './path-index.ts'
import { Slabs } from './slabs.ts'

export { NONE }

/**
 * All znodes as columns of numbers; a node is an index.
 *
 * FENCED: segments of typed arrays instead of objects, siblings as a linked ring of indices, lookup by full path.
 * Why: an object for each znode with its boxed 64-bit numbers costs about 500 bytes and is walked by every collection;
 * this costs under 300 with 100 bytes of data, and the collector sees only names. Segments keep growth free of long
 * pauses. The figure is "resident memory a znode" of apps/bench.
 * Rules: an index is valid until its node is removed. Nothing here knows what a transaction is.
 * Oracle: a map of nodes, in `slabs.test.ts`, and the naive tree of `tree.model.test.ts`.
 */
const BITS = 13
const SIZE = 1 << BITS
const MASK = SIZE - 1

class NodeColumns {
  readonly czxid = new Float64Array(SIZE)
  readonly mzxid = new Float64Array(SIZE)
  readonly pzxid = new Float64Array(SIZE)
  readonly ctime = new Float64Array(SIZE)
  readonly mtime = new Float64Array(SIZE)
  readonly version = new Int32Array(SIZE)
  readonly cversion = new Int32Array(SIZE)
  readonly aversion = new Int32Array(SIZE)
  readonly acl = new Int32Array(SIZE)
  /** CRC-32 of the path, from which those of its children go on; 0 for the root. */
  readonly pathCrc = new Uint32Array(SIZE)
  /** The same, gone on over the data. */
  readonly crc = new Uint32Array(SIZE)
  /** What the node adds to the digest of the tree now. */
  readonly nodeDigest = new Uint32Array(SIZE)
  readonly parent = new Int32Array(SIZE)
  readonly childCount = new Int32Array(SIZE)
  readonly firstChild = new Int32Array(SIZE)
  readonly next = new Int32Array(SIZE)
  /** The previous sibling; of the first one, the last. */
  readonly previous = new Int32Array(SIZE)
  readonly slab = new Int32Array(SIZE)
  readonly offset = new Int32Array(SIZE)
  /** Bytes of data, -1 for null. */
  readonly length = new Int32Array(SIZE)
}

export class NodeStore {
  readonly #segments: NodeColumns[] = []
  readonly #index: PathIndex
  /** The index that was given back last; each one has the one before it as its `next`. An array of them would be copied as it grows. */
  #free = NONE
  readonly #slabs = new Slabs()
  #used = 0
  /** The node that was found last by bytes; the path that it had then, and the hash of that. */
  #found = NONE
  #foundPath = ''
  #foundHash = 0
  count = 0
  /** Bytes of data in all nodes. */
  dataBytes = 0
  /** Characters of all paths. */
  pathChars = 0

  /** `hashKey` is that of `PathIndex`. */
  constructor(hashKey = 0) {
    this.#index = new PathIndex(hashKey)
  }

  /** The index of the node at a path, or `NO_AUTH`. `hash` is that of the path, where it is known. */
  find(path: string, hash?: number): number {
    const last = this.#found
    // Whoever has come by a node asks for it by its path again soon, most often with the text that the node has.
    if (last !== NONE && this.#index.pathAt(last) === path) return last
    return this.#index.find(path, hash)
  }

  /** What a path is found by, for whoever looks for it more than once. */
  hash(path: string): number {
    return path === this.#foundPath ? this.#foundHash : this.#index.hash(path)
  }

  /** The node whose path a reader comes to next; it is behind the path then, and stays where it is when this says `NO_AUTH`. */
  findFromReader(body: Reader): number {
    const before = body.offset
    const start = body.skipBuffer()
    const node = start === -1 ? NONE : this.#index.findAscii(body.bytes, start, body.offset)
    if (node === NONE) body.offset = before
    else {
      this.#found = node
      this.#foundPath = this.pathOf(node)
      this.#foundHash = this.#index.lastHash
    }
    return node
  }

  /** As `find`, where the index may be known already. An index that has another path by now is not believed. */
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

  /** The columns that hold a node; its place in them is `slot(node)`. */
  columns(node: number): NodeColumns {
    return this.#segments[node >> BITS]!
  }

  slot(node: number): number {
    return node & MASK
  }

  pathOf(node: number): string {
    return this.#index.pathAt(node)!
  }

  /** Indices from here on were never given out. */
  get used(): number {
    return this.#used
  }

  /** The path under an index below `used`; undefined when no node has it now. */
  pathAt(node: number): string | undefined {
    return this.#index.pathAt(node)
  }

  /** Adds a node behind its siblings; all its numbers are 0 and its data null. `NO_AUTH`, and nothing has changed, when the path is there. */
  add(path: string, parent: number, hash?: number): number {
    const node = this.#free === NONE ? this.#used : this.#free
    if (!this.#index.add(path, node, hash)) return NONE
    if (this.#free === NONE) this.#used++
    else this.#free = this.nextOf(node)
    this.#begin(node, parent)
    this.pathChars += path.length
    return node
  }

  #begin(node: number, parent: number): void {
    if (node >> BITS >= this.#segments.length) this.#segments.push(new NodeColumns())
    const s = this.columns(node)
    const i = node & MASK
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
    this.pathChars -= this.pathOf(node).length
    this.#index.remove(node, hash)
    this.dataBytes -= Math.max(0, s.length[i]!)
    this.#slabs.free(s.slab[i]!, s.offset[i]!)
    s.next[i] = this.#free
    this.#free = node
    this.count--
  }

  setData(node: number, data: Uint8Array | null): void {
    const s = this.columns(node)
    const i = node & MASK
    this.dataBytes += (data?.length ?? 0) - Math.max(0, s.length[i]!)
    const fits = data !== null && this.#slabs.overwrite(s.slab[i]!, s.offset[i]!, data)
    s.length[i] = data === null ? -1 : data.length
    if (fits) return
    this.#slabs.free(s.slab[i]!, s.offset[i]!)
    s.slab[i] = NONE
    if (data === null) return
    this.#slabs.put(data)
    s.slab[i] = this.#slabs.slab
    s.offset[i] = this.#slabs.offset
  }

  /** Gives data to a node that `add` has just made: the bytes between two offsets. */
  setInitialData(node: number, bytes: DataView, start: number, end: number): void {
    const s = this.columns(node)
    const i = node & MASK
    this.dataBytes += end - start
    s.length[i] = end - start
    this.#slabs.putRange(bytes, start, end)
    s.slab[i] = this.#slabs.slab
    s.offset[i] = this.#slabs.offset
  }

  /** A view of a node's data that holds until the next change, or null. */
  data(node: number): Uint8Array | null {
    const s = this.columns(node)
    const i = node & MASK
    return s.length[i]! < 0 ? null : this.#slabs.view(s.slab[i]!, s.offset[i]!, s.length[i]!)
  }

  /** What a node's data lies in, from `columns().offset` on. */
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

  /** The node after this one when parents come before children, inside the subtree of `top`; `NO_AUTH` at the end. */
  successor(node: number, top: number): number {
    const child = this.firstChildOf(node)
    return child === NONE ? this.successorBehind(node, top) : child
  }

  /** As `successor`, but leaves out what lies below the node. */
  successorBehind(node: number, top: number): number {
    for (let at = node; at !== top && at !== NONE; at = this.parentOf(at)) {
      const next = this.nextOf(at)
      if (next !== NONE) return next
    }
    return NONE
  }

  #link(node: number, parent: number): void {
    const p = this.columns(parent)
    const pi = parent & MASK
    const first = p.firstChild[pi]!
    p.childCount[pi]!++
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
