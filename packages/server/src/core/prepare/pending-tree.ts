import type { ACL } from '@zabra/protocol'
import { RingBuffer } from '../ring-buffer.ts'
import { PathMap } from '../path-map.ts'
import {
  copyStatFields,
  DigestSum,
  isExcludedFromDigest,
  StatFields,
  updateStatDigest,
  statDigest,
  type NodeRef,
  type Tree,
} from '../tree/index.ts'
import type { SessionId, Zxid } from '../types.ts'

/** A znode as it will be once every accepted change is applied. It goes with its transactions to the tree, which finds it by it. */
export class PendingNode implements NodeRef {
  readonly path: string
  readonly hash: number
  /** Where it is in the tree, as far as that is known: -1 before it is applied. */
  index = -1
  /** What it was created below, or removed from. */
  parent: PendingNode | undefined
  /** The change that made it so; 0 for what is committed. */
  zxid: Zxid = 0
  /** Whether it is what `PendingTree` has for its path. */
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
  /** What it adds to the digest of the tree. */
  counted = 0
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

/**
 * The tree with all changes that are on their way: a small map over the committed tree. Entries are dropped once the
 * transaction that made them is applied.
 */
export class PendingTree {
  readonly #tree: Tree
  readonly #changed = new PathMap<PendingNode>()
  /** Nodes on their way that a session owns, so that its end finds them. */
  readonly #created = new Map<SessionId, Set<string>>()
  /**
   * What was changed, and by which transaction in the same place of the other queue, to be dropped from the front. A path stands
   * for a node that went with its session.
   */
  readonly #queue = new RingBuffer<PendingNode | string>('')
  readonly #zxids = new RingBuffer<Zxid>(0)
  readonly #digest = new DigestSum()
  /** The node that is changing, and its numbers before that. */
  #changing: PendingNode | undefined
  readonly #was = new StatFields()
  /** While a multi is prepared: what its changes replaced, so that a failure can put it back. */
  #undo: { path: string; before: PendingNode | undefined; was: PendingNode | undefined }[] | undefined
  #undoDigest = { hi: 0, lo: 0 }
  #undoQueue = 0
  /** What was committed while a multi was prepared. */
  #behind: Zxid = 0

  constructor(tree: Tree) {
    this.#tree = tree
  }

  get size(): number {
    return this.#changed.size
  }

  /** The digest after all pending changes. */
  get digest(): DigestSum {
    if (this.size === 0 && this.#undo === undefined) this.#digest.set(this.#tree.digest ?? { hi: 0, lo: 0 })
    return this.#digest
  }

  /** Whether a change of this path is on its way. */
  hasPendingChange(path: string): boolean {
    return this.#changed.get(path, this.#tree.store.hash(path)) !== undefined
  }

  /** A node as it will be, or undefined when it will not be there. Do not change it: `change` gives one to change. */
  get(path: string): PendingNode | undefined {
    const node = this.lookup(path)
    return node?.exists === true ? node : undefined
  }

  /** The same, or one that will have gone, which whoever creates a node in its place hands to `create`. */
  lookup(path: string): PendingNode | undefined {
    const hash = this.#tree.store.hash(path)
    return this.#changed.get(path, hash) ?? this.#committed(path, hash)
  }

  /** The node to change at `zxid`; its digest is taken out of the sum until `settle` puts it back. */
  beginChange(node: PendingNode, zxid: Zxid): void {
    const sum = this.digest
    if (this.#undo !== undefined) this.#remember(node.path, node.isCurrent ? node : undefined, zxid)
    if (this.#tree.options.digest) {
      sum.subtract(node.counted)
      this.#changing = node
      copyStatFields(node, this.#was)
    }
    if (!node.isCurrent) this.#hold(node)
    this.#enqueue(node, zxid)
  }

  endChange(node: PendingNode): void {
    if (!this.#tree.options.digest || !node.exists) return
    node.counted = isExcludedFromDigest(node.path) ? 0 : this.#count(node)
    this.#changing = undefined
    this.#digest.add(node.counted)
  }

  #count(node: PendingNode): number {
    if (node === this.#changing) return updateStatDigest(node.counted, this.#was, node)
    return statDigest(node, node.czxid, node.ctime, node.owner)
  }

  /** What stands for all nodes that go with a session, so that very many of them take little memory. */
  tombstone(session: SessionId, zxid: Zxid): PendingNode {
    const grave = new PendingNode('', 0, [])
    grave.exists = false
    grave.owner = session
    grave.zxid = zxid
    return grave
  }

  /** A node goes, for good or until it is created again. */
  removeWithSession(node: PendingNode, grave: PendingNode): void {
    const { path, hash } = node
    if (this.#tree.options.digest) this.digest.subtract(node.counted)
    this.#queue.push(path)
    this.#zxids.push(grave.zxid)
    node.isCurrent = false
    this.#changed.set(path, hash, grave)
  }

  /** A node that did not exist until now, behind the change of its parent; `before` is what `look` gave for its path. */
  create(node: PendingNode, before: PendingNode | undefined, zxid: Zxid): void {
    if (this.#undo !== undefined) this.#remember(node.path, before, zxid)
    if (before !== undefined) before.isCurrent = false
    this.#hold(node)
    this.#enqueue(node, zxid)
    this.endChange(node)
    if (node.owner === 0n) return
    const own = this.#created.get(node.owner)
    if (own === undefined) this.#created.set(node.owner, new Set([node.path]))
    else own.add(node.path)
  }

  /** Forgets what is in the tree by now: up to so many changes. False when there are more. */
  forgetApplied(zxid: Zxid, limit = Infinity): boolean {
    // What a multi that is being prepared may put back stays, and is forgotten behind it.
    if (this.#undo !== undefined) {
      this.#behind = zxid
      return true
    }
    const zxids = this.#zxids
    // A node that was changed again stands in the queue again, further back, and is dropped there. What stands here must
    // not wait for it: under load a busy parent is never at rest.
    let left = limit
    for (; left > 0 && zxids.length > 0 && zxids.first <= zxid; left--) {
      const next = this.#queue.shift()
      zxids.shift()
      if (typeof next === 'string') {
        const hash = this.#tree.store.hash(next)
        const node = this.#changed.get(next, hash)
        if (node !== undefined && node.zxid <= zxid) this.#forget(next, hash, node)
      } else if (next.zxid <= zxid && next.isCurrent) this.#forget(next.path, next.hash, next)
    }
    return zxids.length === 0 || zxids.first > zxid
  }

  /**
   * The ephemeral nodes that a session will have, and perhaps some that it will not: look at each with `get`. Those on their
   * way now come at the end, so that one that comes into the tree meanwhile is met at least once.
   */
  *ephemeralsOf(session: SessionId): Generator<string> {
    const created = [...(this.#created.get(session) ?? [])]
    for (const node of this.#tree.owners.ofSession(session)) yield this.#tree.pathOf(node)
    yield* created
  }

  /** From here on every change can be taken back by `rollback`, until `keep`. */
  beginMulti(): void {
    this.#undoDigest = this.digest.value()
    this.#undoQueue = this.#queue.length
    this.#undo = []
  }

  commitMulti(): void {
    this.#undo = undefined
    this.forgetApplied(this.#behind)
  }

  /** Takes back up to so many changes. False once all are. */
  rollbackMulti(limit: number): boolean {
    for (let left = limit; left > 0; left--) {
      const last = this.#undo?.pop()
      if (last === undefined) break
      const { path, before, was } = last
      const hash = this.#tree.store.hash(path)
      const node = this.#changed.get(path, hash)
      if (node !== undefined && was?.owner !== node.owner) this.#forget(path, hash, node)
      if (node !== undefined) node.isCurrent = false
      if (before === undefined) this.#changed.delete(path, hash)
      else this.#changed.set(path, hash, Object.assign(before, was))
    }
    if (this.#undo !== undefined && this.#undo.length > 0) return true
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
    this.#queue.push(node)
    this.#zxids.push(zxid)
  }

  /** What the multi itself has made of a node is nothing to go back to. */
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
    // The tree's own text of the path: it has been looked up before, which makes the next look cheap.
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
    node.counted = c.nodeDigest[i]!
    return node
  }
}
