import { parentOf, type ACL } from '@zabra/protocol'
import { beginsWith } from '../begins-with.ts'
import { RingBuffer } from '../ring-buffer.ts'
import { partsOf } from '../steps.ts'
import { SessionMap } from '../session-map.ts'
import { TextMap } from '../text-map.ts'
import {
  copyStatFields,
  DigestSum,
  isExcludedFromDigest,
  statDigest,
  type NodeRef,
  type Tree,
} from '../tree/index.ts'
import { PathMap } from '../tree/path-map.ts'
import type { SessionId, Zxid } from '../types.ts'

/**
 * A znode as it will be once every accepted change is applied. Its transactions carry it to the tree, as a reference by which
 * the tree finds the node without a lookup.
 */
export class PendingNode implements NodeRef {
  readonly path: string
  readonly hash: number
  /** Its index in the tree, if it is known; -1 before it is applied. */
  index = -1
  /** The parent of a node that was created or removed. */
  parent: PendingNode | undefined
  /** The zxid of its last change; 0 for a committed node. */
  zxid: Zxid = 0
  /** Whether `PendingTree` holds it as the state of its path. */
  isCurrent = false
  exists = true
  czxid = 0
  mzxid = 0
  pzxid = 0
  ctime = 0
  mtime = 0
  version = 0
  cversion = 0
  aversion = 0
  owner = 0n
  childCount = 0
  dataLength = 0
  pathCrc = 0
  crcPrefix = 0
  /** Its share of the digest of the tree. */
  nodeDigest = 0
  acl: readonly ACL[]

  constructor(path: string, hash: number, acl: readonly ACL[]) {
    this.path = path
    this.hash = hash
    this.acl = acl
  }

  clone(): PendingNode {
    return Object.assign(new PendingNode(this.path, this.hash, this.acl), this)
  }
}

/** Counts pending changes that were added, and those that were taken away: applied, undone or lost. */
export interface ChangeCounts {
  added: number
  removed: number
}

/**
 * Holds the tree with all accepted changes: a small map over the committed tree. An entry is dropped when the transaction that made it is
 * applied.
 */
export class PendingTree {
  readonly #tree: Tree
  readonly #counts: ChangeCounts
  #changed = new PathMap<PendingNode>()
  /** Pending ephemeral nodes by session, so that closing the session removes them. */
  readonly #created = new SessionMap<TextMap<true>>()
  /**
   * Changed nodes in the order of their changes; `#zxids` has the transaction of each at the same index. A path is that of a node
   * that was removed with its session.
   */
  readonly #queue = new RingBuffer<PendingNode | string>('')
  readonly #zxids = new RingBuffer<Zxid>(0)
  readonly #digest = new DigestSum()
  /** The parent that was looked up last. */
  #lastParent: PendingNode | undefined
  /** The node that was changed, created or removed last: the hint for applying the transaction that did it. */
  lastChanged: PendingNode | undefined
  /** While a multi is prepared: the states that its changes have replaced, to be restored when it fails. */
  #undo: { path: string; before: PendingNode | undefined; was: PendingNode | undefined }[] | undefined
  #undoDigest = { hi: 0, lo: 0 }
  #undoQueue = 0
  /** The last transaction that was applied while a multi was prepared. */
  #appliedMeanwhile: Zxid = 0

  constructor(tree: Tree, counts: ChangeCounts = { added: 0, removed: 0 }) {
    this.#tree = tree
    this.#counts = counts
  }

  /** Forgets all pending changes. */
  clear(): void {
    this.#changed = new PathMap()
    this.#created.clear()
    this.#counts.removed += this.#queue.length
    this.#queue.clear()
    this.#zxids.clear()
    this.#lastParent = this.lastChanged = this.#undo = undefined
    this.#appliedMeanwhile = 0
  }

  get size(): number {
    return this.#changed.size
  }

  /** The digest after all pending changes. */
  get digest(): DigestSum {
    if (this.size === 0 && this.#undo === undefined) this.#digest.set(this.#tree.digest ?? { hi: 0, lo: 0 })
    return this.#digest
  }

  /** Whether a change of this path is pending. */
  hasPendingChange(path: string): boolean {
    return this.#changed.get(path, this.#tree.store.hash(path)) !== undefined
  }

  /** Returns a node as it will be, or undefined when it will not exist. Change it only after `beginChange`. */
  get(path: string): PendingNode | undefined {
    const node = this.lookup(path)
    return node?.exists === true ? node : undefined
  }

  /** As `get`, but also returns a node that will have been removed: `create` of a node in its place needs it. */
  lookup(path: string): PendingNode | undefined {
    const hash = this.#tree.store.hash(path)
    return this.#changed.get(path, hash) ?? this.#committed(path, hash)
  }

  /** Returns the parent of a path. Consecutive writes often have the same parent, for which a lookup is saved. */
  parent(path: string): PendingNode | undefined {
    const last = this.#lastParent
    if (last?.isCurrent === true && last.exists && isChild(path, last.path)) return last
    return (this.#lastParent = this.get(parentOf(path)))
  }

  /** Begins a change of a node at `zxid`. Subtracts its share from the digest, until `endChange` adds the new one. */
  beginChange(node: PendingNode, zxid: Zxid): void {
    const sum = this.digest
    this.lastChanged = node
    if (this.#undo !== undefined) this.#remember(node.path, node.isCurrent ? node : undefined, zxid)
    if (this.#tree.options.digest) copyStatFields(node, sum.beginChange(node, node.nodeDigest))
    if (!node.isCurrent) this.#hold(node)
    this.#enqueue(node, zxid)
  }

  endChange(node: PendingNode): void {
    if (!this.#tree.options.digest || !node.exists) return
    const hasBegun = this.#digest.endChange(node)
    node.nodeDigest = isExcludedFromDigest(node.path)
      ? 0
      : hasBegun
        ? this.#digest.updated(node.nodeDigest, node)
        : statDigest(node, node.czxid, node.ctime, node.owner)
    this.#digest.add(node.nodeDigest)
  }

  /** Returns the one object that represents all nodes removed with a session, so that very many of them take little memory. */
  tombstone(session: SessionId, zxid: Zxid): PendingNode {
    const tombstone = new PendingNode('', 0, [])
    tombstone.exists = false
    tombstone.owner = session
    tombstone.zxid = zxid
    return tombstone
  }

  /** Removes a node of a session that closes. */
  removeWithSession(node: PendingNode, tombstone: PendingNode): void {
    const { path, hash } = node
    if (this.#tree.options.digest) this.digest.subtract(node.nodeDigest)
    this.#push(path, tombstone.zxid)
    node.isCurrent = false
    this.#changed.set(path, hash, tombstone)
  }

  /** Adds a new node, after the change of its parent. `before` is what `lookup` has returned for its path. */
  create(node: PendingNode, before: PendingNode | undefined, zxid: Zxid): void {
    if (this.#undo !== undefined) this.#remember(node.path, before, zxid)
    if (before !== undefined) before.isCurrent = false
    this.lastChanged = node
    this.#hold(node)
    this.#enqueue(node, zxid)
    this.endChange(node)
    if (node.owner === 0n) return
    const own = this.#created.get(node.owner)
    if (own !== undefined) own.set(node.path, true)
    else {
      const first = new TextMap<true>(this.#tree.options.hashKey)
      first.set(node.path, true)
      this.#created.set(node.owner, first)
    }
  }

  /** Forgets the changes up to a zxid, which are applied, but at most `limit`. Returns false when some are left. */
  forgetApplied(zxid: Zxid, limit = Infinity): boolean {
    // A multi that is being prepared may have to restore them: they are forgotten after it.
    if (this.#undo !== undefined) {
      this.#appliedMeanwhile = zxid
      return true
    }
    const zxids = this.#zxids
    // A node that was changed again is in the queue a second time, and is dropped there. The changes before that must not wait
    // for it: under load, a busy parent always has a pending change.
    let left = limit
    const before = zxids.length
    while (left > 0 && zxids.length > 0 && zxids.first <= zxid) {
      const next = this.#queue.shift()
      zxids.shift()
      left -= partsOf(typeof next === 'string' ? next : next.path)
      if (typeof next === 'string') {
        const hash = this.#tree.store.hash(next)
        const node = this.#changed.get(next, hash)
        if (node !== undefined && node.zxid <= zxid) this.#forget(next, hash, node)
      } else if (next.zxid <= zxid && next.isCurrent) this.#forget(next.path, next.hash, next)
    }
    this.#counts.removed += before - zxids.length
    return zxids.length === 0 || zxids.first > zxid
  }

  /**
   * Yields the paths of the ephemeral nodes that a session will own, and possibly others: check each with `get`. Nodes that are
   * pending now come last, so that a node that is applied during the iteration is not missed.
   */
  *ephemeralsOf(session: SessionId): Generator<string> {
    const created = [...(this.#created.get(session)?.keys() ?? [])]
    for (const node of this.#tree.owners.ofSession(session)) yield this.#tree.pathOf(node)
    yield* created
  }

  /** Begins a multi: `rollbackMulti` undoes its changes, `commitMulti` keeps them. */
  beginMulti(): void {
    this.#undoDigest = this.digest.value()
    this.#undoQueue = this.#queue.length
    this.#undo = []
  }

  commitMulti(): void {
    this.#undo = undefined
    this.forgetApplied(this.#appliedMeanwhile)
  }

  /** Undoes up to `limit` changes of the multi, the last one first. Returns false once all are undone. */
  rollbackMulti(limit: number): boolean {
    for (let left = limit; left > 0;) {
      const last = this.#undo?.pop()
      if (last === undefined) break
      const { path, before, was } = last
      left -= partsOf(path)
      const hash = this.#tree.store.hash(path)
      const node = this.#changed.get(path, hash)
      if (node !== undefined && was?.owner !== node.owner) this.#forget(path, hash, node)
      if (node !== undefined) node.isCurrent = false
      if (before === undefined) this.#changed.delete(path, hash)
      else this.#changed.set(path, hash, Object.assign(before, was))
    }
    if (this.#undo !== undefined && this.#undo.length > 0) return true
    this.#counts.removed += this.#queue.length - this.#undoQueue
    for (const queue of [this.#queue, this.#zxids]) queue.drop(queue.length - this.#undoQueue)
    this.#digest.set(this.#undoDigest)
    this.commitMulti()
    return false
  }

  #forget(path: string, hash: number, node: PendingNode): void {
    const { owner } = node
    node.isCurrent = false
    this.#changed.delete(path, hash)
    const own = owner === 0n ? undefined : this.#created.get(owner)
    if (own?.delete(path) === true && own.size === 0) this.#created.delete(owner)
  }

  #hold(node: PendingNode): void {
    node.isCurrent = true
    this.#changed.set(node.path, node.hash, node)
  }

  #enqueue(node: PendingNode, zxid: Zxid): void {
    if (node.zxid === zxid) return
    node.zxid = zxid
    this.#push(node, zxid)
  }

  #push(change: PendingNode | string, zxid: Zxid): void {
    this.#queue.push(change)
    this.#zxids.push(zxid)
    this.#counts.added++
  }

  /** Records the state of a path before its first change by the multi. */
  #remember(path: string, before: PendingNode | undefined, zxid: Zxid): void {
    if (before?.zxid === zxid) return
    this.#undo!.push({ path, before, was: before?.clone() })
  }

  #committed(path: string, hash: number): PendingNode | undefined {
    const tree = this.#tree
    const at = tree.store.find(path, hash)
    if (at === -1) return undefined
    const c = tree.store.columns(at)
    const i = tree.store.slot(at)
    // The tree's own string of the path: its hash code is computed already, which makes the next lookup cheap.
    const node = new PendingNode(tree.store.pathOf(at), hash, tree.acls.get(c.acl[i]!))
    node.index = at
    node.czxid = c.czxid[i]!
    node.mzxid = c.mzxid[i]!
    node.pzxid = c.pzxid[i]!
    node.ctime = c.ctime[i]!
    node.mtime = c.mtime[i]!
    node.version = c.version[i]!
    node.cversion = c.cversion[i]!
    node.aversion = c.aversion[i]!
    node.owner = tree.owners.of(at)
    node.childCount = c.childCount[i]!
    node.dataLength = Math.max(0, c.length[i]!)
    node.pathCrc = c.pathCrc[i]!
    node.crcPrefix = c.crc[i]!
    node.nodeDigest = c.nodeDigest[i]!
    return node
  }
}

/** Whether a path is that of a child of a node other than the root. */
const isChild = (path: string, parent: string): boolean =>
  path.charCodeAt(parent.length) === 0x2f &&
  path.lastIndexOf('/') === parent.length &&
  beginsWith(path, parent)
