import {
  CONTAINER_OWNER,
  ErrorCode,
  OpCode,
  ownerKind,
  parentOf,
  READ_ACL_UNSAFE,
  ttlOwner,
  type ACL,
  type Writer,
} from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import type { Digest, SetDataTxn, StoredStat, Txn, TxnHeader, Zxid } from '../types.ts'
import { runToEnd } from '../steps.ts'
import { AclTable, OPEN_ACL_ID } from './acl-table.ts'
import { applyCloseSession, applyMulti } from './apply-in-steps.ts'
import { BulkLoader } from './bulk-load.ts'
import type { ChangeSink, ApplyHint, PartCallback, NodeRef, TreeOptions, Traversal } from './types.ts'
import { TreeCursor } from './cursor.ts'
import { TreeDigest } from './digest.ts'
import { NodeStore, NONE } from './node-store.ts'
import { OwnerIndex } from './owners.ts'
import { LIMITS_NAME, QuotaIndex, QuotaTracker, quotaTarget } from './quotas.ts'

/**
 * The tree of znodes and how transactions change it (`DataTree.processTxn`). A transaction holds the resulting state, so
 * applying is idempotent: if a transaction is applied again, or after later ones, the rest of the replay corrects the result.
 */
export class Tree {
  readonly acls: AclTable
  readonly store: NodeStore
  readonly owners: OwnerIndex
  readonly quotas: QuotaIndex
  /** The zxid of the last transaction applied. */
  lastZxid: Zxid = 0
  /** The version of the data of the node that was deleted last. */
  deletedVersion = 0
  readonly #options: TreeOptions
  readonly #digest: TreeDigest
  readonly #quotaTracker: QuotaTracker
  readonly #traversals = new Set<Traversal>()
  #isApplying = false
  /** The node of the last setData. */
  #lastWritten = NONE
  #deferred: (() => void)[] = []

  constructor(options: TreeOptions) {
    this.#options = options
    this.store = new NodeStore(options.hashKey)
    this.acls = new AclTable(options.hashKey)
    this.quotas = new QuotaIndex(options.hashKey)
    this.#quotaTracker = new QuotaTracker(this.store, this.quotas, () => this.#isApplying, options.hashKey)
    this.owners = new OwnerIndex(options)
    this.#digest = new TreeDigest(this.store, this.owners)
    this.#addSystemNode('/', NONE, OPEN_ACL_ID)
    this.#addSystemNode('/zookeeper', this.find('/'), OPEN_ACL_ID)
    this.#addSystemNode('/zookeeper/quota', this.find('/zookeeper'), OPEN_ACL_ID)
    this.#addSystemNode('/zookeeper/config', this.find('/zookeeper'), this.acls.retain(READ_ACL_UNSAFE))
    // Apache creates the configuration node with aversion -1, which clients see.
    const config = this.find('/zookeeper/config')
    this.store.columns(config).aversion[this.store.slot(config)] = -1
  }

  get options(): TreeOptions {
    return this.#options
  }

  /** Returns whether a digest from the log equals that of the tree now. */
  matches(digest: Digest): boolean {
    return this.#digest.matches(digest)
  }

  get nodeCount(): number {
    return this.store.count
  }

  /** Size of all paths and data in bytes, as `mntr` reports it. */
  get approximateDataSize(): number {
    return this.store.dataBytes + this.store.pathChars
  }

  /** The digest of the tree; undefined when digests are disabled. */
  get digest(): Digest | undefined {
    return this.#options.digest ? this.#digest.value() : undefined
  }

  // Reading

  /** Returns the index of a node, or -1. The empty path is the root too. */
  find(path: string): number {
    return this.store.find(path === '' ? '/' : path)
  }

  /** As `find`, without a lookup for the node of the last setData. */
  findWritten(path: string): number {
    const node = this.#lastWritten
    return node !== NONE && this.store.pathAt(node) === path ? node : this.find(path)
  }

  has(path: string): boolean {
    return this.find(path) !== NONE
  }

  statOf(node: number): StoredStat {
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    return {
      czxid: c.czxid[i]!,
      mzxid: c.mzxid[i]!,
      pzxid: c.pzxid[i]!,
      ctime: c.ctime[i]!,
      mtime: c.mtime[i]!,
      version: c.version[i]!,
      cversion: c.cversion[i]!,
      aversion: c.aversion[i]!,
      owner: this.owners.of(node),
    }
  }

  /** Writes the stat that clients see (68 bytes). */
  writeStat(node: number, writer: Writer): void {
    const owner = this.owners.of(node)
    const isEphemeral = owner !== 0n && ownerKind(owner, this.#options) === 'ephemeral'
    this.store.writeStat(node, isEphemeral ? owner : 0n, writer)
  }

  /** Writes the fields that follow the data of a node in a snapshot. */
  writeStored(node: number, writer: Writer): void {
    this.store.writeStored(node, this.owners.of(node), writer)
  }

  /** Writes the data of a node with its length, or null. */
  writeData(node: number, writer: Writer): void {
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    const length = c.length[i]!
    writer.int(length)
    if (length > 0) writer.range(this.store.dataViewOf(node), c.offset[i]!, c.offset[i]! + length)
  }

  /** Returns a view of a node's data, valid until the tree changes next, or null. */
  dataOf(node: number): Uint8Array | null {
    return this.store.data(node)
  }

  aclOf(node: number): readonly ACL[] {
    return this.acls.get(this.aclIdOf(node))
  }

  aclIdOf(node: number): number {
    return this.store.columns(node).acl[this.store.slot(node)]!
  }

  pathOf(node: number): string {
    return this.store.pathOf(node)
  }

  childCount(node: number): number {
    return this.store.columns(node).childCount[this.store.slot(node)]!
  }

  // Applying

  /**
   * Applies a transaction and returns its error code, 0 for success. `sink` receives the changes, `part` is called for each
   * part of a multi, `hint` holds results of the preparation.
   */
  apply(header: TxnHeader, txn: Txn, sink?: ChangeSink, part?: PartCallback, hint?: ApplyHint): number {
    const err = this.applyPart(header, txn, sink, part, hint)
    this.#advance(header.zxid)
    return err
  }

  /** Applies a transaction, or a part of one, without advancing `lastZxid`. */
  applyPart(header: TxnHeader, txn: Txn, sink?: ChangeSink, part?: PartCallback, hint?: ApplyHint): number {
    switch (txn.type) {
      case OpCode.create:
      case OpCode.create2:
        return this.#create(header, txn, txn.ephemeral ? header.sessionId : 0n, sink, hint)
      case OpCode.createContainer:
        return this.#create(header, txn, CONTAINER_OWNER, sink, hint)
      case OpCode.createTTL:
        return this.#create(header, txn, ttlOwner(txn.ttl), sink, hint)
      case OpCode.delete:
      case OpCode.deleteContainer:
        return this.remove(header.zxid, txn.path, sink, hint?.node)
      case OpCode.setData:
      case OpCode.reconfig:
        return this.#setData(header, txn, sink, hint)
      case OpCode.setACL:
        return this.#setACL(header.zxid, txn.path, txn.acl, txn.version)
      case OpCode.multi:
        runToEnd(applyMulti(this, header, txn, sink, part))
        return ErrorCode.OK
      case OpCode.closeSession:
        runToEnd(applyCloseSession(this, header, txn, sink))
        return ErrorCode.OK
      case OpCode.error:
        return txn.err
      case OpCode.check:
      case OpCode.createSession:
        return ErrorCode.OK
    }
  }

  #advance(zxid: Zxid): void {
    if (zxid <= this.lastZxid) return
    this.lastZxid = zxid
    for (const traversal of this.#traversals) traversal.applied(zxid)
  }

  /** Begins an incremental apply. The tree is inconsistent until `endApply`, and must not be read. */
  beginApply(): void {
    this.#isApplying = true
  }

  /** Runs the quota recounts that the transaction needs, `nodes` of the tree a step. */
  recountQuotasInSteps(nodes: number): Generator<void> {
    return this.#quotaTracker.runDeferredRecounts(nodes)
  }

  endApply(zxid: Zxid): void {
    this.#advance(zxid)
    this.#isApplying = false
    const waiting = this.#deferred
    this.#deferred = []
    for (const action of waiting) action()
  }

  /** Whether an incremental apply is in progress. */
  get isApplying(): boolean {
    return this.#isApplying
  }

  /** Runs `action` when the tree is consistent: now, or after the incremental apply that is in progress. */
  whenConsistent(action: () => void): void {
    if (this.#isApplying) this.#deferred.push(action)
    else action()
  }

  #create(
    header: TxnHeader,
    txn: { path: string; data: Uint8Array | null; acl: readonly ACL[]; parentCVersion: number },
    owner: bigint,
    sink?: ChangeSink,
    hint?: ApplyHint,
  ): number {
    const ref = hint?.node
    const parentRef = ref?.parent
    const parentPath = parentRef?.path ?? parentOf(txn.path)
    const parent = this.#resolve(parentPath, parentRef)
    if (parent === NONE || this.#isCreatedAfter(parent, header.zxid)) return ErrorCode.NONODE
    // A fuzzy snapshot may hold the node, but an earlier state of its parent, which was written before it.
    this.#advanceParent(parent, parentPath, header.zxid, txn.parentCVersion)
    const node = this.store.add(txn.path, parent, ref?.hash)
    if (node === NONE) {
      const existing = this.store.find(txn.path)
      if (!this.#isCreatedAfter(existing, header.zxid)) this.#replaceAcl(existing, txn.acl)
      return ErrorCode.NODEEXISTS
    }
    if (ref !== undefined) ref.index = node
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    c.czxid[i] = c.mzxid[i] = c.pzxid[i] = header.zxid
    c.ctime[i] = c.mtime[i] = header.time
    c.acl[i] = this.acls.retain(txn.acl)
    this.store.setData(node, txn.data)
    if (owner !== 0n) this.owners.set(node, owner)
    for (const traversal of this.#traversals) traversal.added(node, txn.path)
    if (this.#options.digest) {
      this.#digest.hash(node, txn.path, txn.data, ref === undefined ? undefined : hint!.crc)
      this.#afterChange(node, txn.path)
    }
    this.#quotaTracker.created(txn.path, txn.data?.length ?? 0)
    if (sink !== undefined) this.#options.traffic?.written(this.store, node, txn.data?.length ?? 0)
    sink?.created(txn.path, this.aclOf(node), parentPath, this.aclOf(parent))
    return ErrorCode.OK
  }

  #resolve(path: string, ref: NodeRef | undefined): number {
    return ref === undefined ? this.store.find(path) : this.store.resolve(ref)
  }

  /**
   * Returns whether a node was created after a transaction. This happens in replay only: a fuzzy snapshot may hold a node that
   * was removed and created again while it was taken. For earlier transactions the node does not exist.
   */
  #isCreatedAfter(node: number, zxid: Zxid): boolean {
    return this.store.columns(node).czxid[this.store.slot(node)]! > zxid
  }

  /** Counts a created child. The counter only rises, so that replaying an old creation does not lower it. */
  #advanceParent(parent: number, path: string, zxid: Zxid, parentCVersion: number): void {
    const p = this.store.columns(parent)
    const pi = this.store.slot(parent)
    const cversion = parentCVersion === -1 ? (p.cversion[pi]! + 1) | 0 : parentCVersion
    if (cversion <= p.cversion[pi]!) return
    this.#beforeChange(parent)
    p.cversion[pi] = cversion
    p.pzxid[pi] = zxid
    this.#afterChange(parent, path)
  }

  /**
   * Applies the deletion of a node. Returns the error code.
   *
   * The node may have children in replay: Apache ZooKeeper may write a node to a snapshot before it is deleted, and behind it the children
   * that the node has got when it was created again. The log creates them again. Throws an `InvariantError` where a child is older.
   */
  remove(zxid: Zxid, path: string, sink?: ChangeSink, ref?: NodeRef): number {
    const parentRef = ref?.parent
    const parentPath = parentRef?.path ?? parentOf(path)
    const parent = this.#resolve(parentPath, parentRef)
    if (parent === NONE || path === '/') return ErrorCode.NONODE
    const p = this.store.columns(parent)
    const pi = this.store.slot(parent)
    if (zxid > p.pzxid[pi]!) {
      this.#beforeChange(parent)
      p.pzxid[pi] = zxid
      this.#afterChange(parent, parentPath)
    }
    const node = this.#resolve(path, ref)
    if (node === NONE || this.#isCreatedAfter(node, zxid)) return ErrorCode.NONODE
    this.#removeBelow(node, zxid, sink)
    this.#removeLeaf(node, path, parent, sink, ref?.hash)
    return ErrorCode.OK
  }

  /** Removes the descendants of a node, children before their parents. None may have been created before the transaction. */
  #removeBelow(top: number, zxid: Zxid, sink: ChangeSink | undefined): void {
    let node = top
    for (;;) {
      for (let child = node; child !== NONE; child = this.store.firstChildOf(node)) node = child
      if (node === top) return
      const parent = this.store.parentOf(node)
      const path = this.pathOf(node)
      const isLater = this.store.columns(node).czxid[this.store.slot(node)]! >= zxid
      invariant(isLater, 'A znode with children is never deleted.', { path, zxid })
      this.#removeLeaf(node, path, parent, sink)
      node = parent
    }
  }

  #removeLeaf(node: number, path: string, parent: number, sink?: ChangeSink, hash?: number): void {
    if (this.#options.digest) this.#digest.subtract(node)
    const columns = this.store.columns(node)
    const slot = this.store.slot(node)
    const bytes = Math.max(0, columns.length[slot]!)
    this.deletedVersion = columns.version[slot]!
    if (sink !== undefined) this.#options.traffic?.written(this.store, node, 0)
    const acl = this.aclOf(node)
    this.acls.release(this.aclIdOf(node))
    for (const traversal of this.#traversals) traversal.removing(node)
    this.owners.delete(node)
    this.store.remove(node, hash)
    this.#quotaTracker.deleted(path, bytes)
    sink?.deleted(path, acl, parentOf(path), this.aclOf(parent))
  }

  #setData(
    header: TxnHeader,
    { path, data, version }: SetDataTxn,
    sink?: ChangeSink,
    hint?: ApplyHint,
  ): number {
    const ref = hint?.node
    const node = this.#resolve(path, ref)
    if (node === NONE || this.#isCreatedAfter(node, header.zxid)) return ErrorCode.NONODE
    this.#lastWritten = node
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    const before = Math.max(0, c.length[i]!)
    this.#beforeChange(node)
    this.store.setData(node, data)
    c.mtime[i] = header.time
    c.mzxid[i] = header.zxid
    c.version[i] = version
    if (this.#options.digest) this.#digest.hashData(node, data, ref === undefined ? undefined : hint!.crc)
    this.#afterChange(node, path)
    this.#quotaTracker.resized(path, (data?.length ?? 0) - before)
    if (sink !== undefined) this.#options.traffic?.written(this.store, node, data?.length ?? 0)
    sink?.dataChanged(path, this.aclOf(node))
    return ErrorCode.OK
  }

  #setACL(zxid: Zxid, path: string, acl: readonly ACL[], version: number): number {
    const node = this.store.find(path)
    if (node === NONE || this.#isCreatedAfter(node, zxid)) return ErrorCode.NONODE
    this.#beforeChange(node)
    this.#replaceAcl(node, acl)
    this.store.columns(node).aversion[this.store.slot(node)] = version
    this.#afterChange(node, path)
    return ErrorCode.OK
  }

  #replaceAcl(node: number, acl: readonly ACL[]): void {
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    const id = this.acls.retain(acl)
    this.acls.release(c.acl[i]!)
    c.acl[i] = id
  }

  // Digest

  #beforeChange(node: number): void {
    if (this.#options.digest) this.#digest.beforeChange(node)
  }

  #afterChange(node: number, path: string): void {
    if (this.#options.digest) this.#digest.afterChange(node, path)
  }

  // Snapshots

  /**
   * Returns a cursor over a node and its descendants, by default over all nodes, parents before children, which works while the tree
   * changes. Close it at the end.
   */
  scan(top = this.find('/')): TreeCursor {
    return new TreeCursor(this, top)
  }

  /** Notifies a traversal of changes from now on. Returns a function that ends the notifications. */
  addTraversal(traversal: Traversal): () => void {
    this.#traversals.add(traversal)
    return () => this.#traversals.delete(traversal)
  }

  /** Empties the tree. Then load a snapshot: `loadNode` for each node, and `endLoad`. */
  clear(): void {
    for (const path of ['/zookeeper/config', '/zookeeper/quota', '/zookeeper']) {
      this.store.remove(this.store.find(path))
    }
    for (const [id] of this.acls.entries()) this.acls.release(id)
    this.#digest.clear()
    this.#afterChange(this.find('/'), '/')
  }

  /** Loads a node of a snapshot. Returns false when its parent is missing. */
  loadNode(path: string, data: Uint8Array | null, aclId: number, stat: StoredStat): boolean {
    // The root is there already, and counts as below itself.
    const parent = this.store.find(parentOf(path))
    if (parent === NONE) return false
    let node = this.find(path)
    if (node === NONE) node = this.store.add(path, parent)
    else this.#removeBeforeReload(node)
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    // Added up node by node: a pass over all nodes at the end would block the event loop.
    if (this.#options.digest) this.#digest.hash(node, path, data)
    c.czxid[i] = stat.czxid
    c.mzxid[i] = stat.mzxid
    c.pzxid[i] = stat.pzxid
    c.ctime[i] = stat.ctime
    c.mtime[i] = stat.mtime
    c.version[i] = stat.version
    c.cversion[i] = stat.cversion
    c.aversion[i] = stat.aversion
    // A node created after the ACL table was written refers to a list that is not in it; replaying its creation sets the list.
    const known = this.acls.retainId(aclId)
    c.acl[i] = known ? aclId : OPEN_ACL_ID
    this.store.setData(node, data)
    if (stat.owner !== 0n) this.owners.set(node, stat.owner)
    this.#afterChange(node, path)
    const limited = quotaTarget(path, LIMITS_NAME)
    if (limited !== undefined) this.quotas.add(limited)
    return true
  }

  /** Returns a loader that decodes ordinary nodes from the bytes of a snapshot, faster than `loadNode`. */
  bulkLoader(): BulkLoader {
    return new BulkLoader(this.store, this.owners, this.acls, this.#options.digest ? this.#digest : undefined)
  }

  /** Prepares to load a node again: one that was removed and created during the snapshot is in it twice; the later wins. */
  #removeBeforeReload(node: number): void {
    if (this.#options.digest) this.#digest.subtract(node)
    this.acls.releaseDuringLoad(this.aclIdOf(node))
    this.owners.delete(node)
  }

  /** Ends the loading of a snapshot, which is of `zxid`. */
  endLoad(zxid: Zxid): void {
    for (const path of ['/zookeeper', '/zookeeper/quota', '/zookeeper/config']) {
      if (!this.has(path))
        this.#addSystemNode(
          path,
          this.store.find(parentOf(path)),
          path.endsWith('config') ? this.acls.retain(READ_ACL_UNSAFE) : OPEN_ACL_ID,
        )
    }
    this.acls.purgeUnused()
    this.lastZxid = zxid
    this.#quotaTracker.recount()
  }

  #addSystemNode(path: string, parent: number, acl: number): void {
    const node = this.store.add(path, parent)
    this.store.setData(node, new Uint8Array(0))
    this.store.columns(node).acl[this.store.slot(node)] = acl
    if (!this.#options.digest) return
    this.#digest.hash(node, path, null)
    this.#afterChange(node, path)
  }
}
