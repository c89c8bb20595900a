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
import type { Digest, NodeFacts, SetDataTxn, StoredStat, Txn, TxnHeader, Zxid } from '../types.ts'
import { AclTable, OPEN } from './acl-table.ts'
import { BulkLoad } from './bulk-load.ts'
import type { ChangeSink, Hint, PartDone, Place, TreeOptions, Walker } from './contract.ts'
import { TreeCursor } from './cursor.ts'
import { DigestKeeper } from './digest-keeper.ts'
import { NodeStore, NONE } from './node-store.ts'
import { OwnerIndex } from './owners.ts'
import { QuotaKeeper } from './quota-keeper.ts'
import { LIMITS, QuotaIndex, quotaSubject } from './quotas.ts'
import { writeStat, writeStored } from './stat.ts'
import { applyClose, applyMulti } from './stepwise.ts'

/**
 * The tree of znodes and what transactions do to it (`DataTree.processTxn`). Transactions say what is so afterwards, so
 * applying one again, or to a tree that has seen later ones, changes nothing that replay does not repair.
 */
export class Tree {
  readonly acls = new AclTable()
  readonly store: NodeStore
  readonly owners: OwnerIndex
  readonly quotas = new QuotaIndex()
  /** The zxid of the last transaction applied. */
  lastZxid: Zxid = 0
  readonly #options: TreeOptions
  readonly #digest: DigestKeeper
  readonly #quotaKeeper: QuotaKeeper
  readonly #walkers = new Set<Walker>()
  #halfway = false
  /** The node that was written last. */
  #written = NONE
  #waiting: (() => void)[] = []

  constructor(options: TreeOptions) {
    this.#options = options
    this.store = new NodeStore(options.hashKey)
    this.#quotaKeeper = new QuotaKeeper(this.store, this.quotas)
    this.owners = new OwnerIndex(options)
    this.#digest = new DigestKeeper(this.store, this.owners)
    this.#plant('/', NONE, OPEN)
    this.#plant('/zookeeper', this.find('/'), OPEN)
    this.#plant('/zookeeper/quota', this.find('/zookeeper'), OPEN)
    this.#plant('/zookeeper/config', this.find('/zookeeper'), this.acls.use(READ_ACL_UNSAFE))
    // The configuration node is born with one change of its ACL undone, which clients see as aversion -1.
    const config = this.find('/zookeeper/config')
    this.store.columns(config).aversion[this.store.slot(config)] = -1
  }

  get options(): TreeOptions {
    return this.#options
  }

  /** Whether a digest from the log is that of the tree now. */
  matches(digest: Digest): boolean {
    return this.#digest.matches(digest)
  }

  get nodeCount(): number {
    return this.store.count
  }

  /** Bytes of paths and data, as `mntr` reports them. */
  get approximateDataSize(): number {
    return this.store.dataBytes + this.store.pathChars
  }

  /** The digest now; undefined when digests are switched off. */
  get digest(): Digest | undefined {
    return this.#options.digest ? this.#digest.value() : undefined
  }

  // Reading

  /** The index of a node, or -1. The empty path is another name of the root. */
  find(path: string): number {
    return this.store.find(path === '' ? '/' : path)
  }

  /** The same, for the node that was just written. */
  findWritten(path: string): number {
    const node = this.#written
    return node !== NONE && this.store.pathAt(node) === path ? node : this.find(path)
  }

  has(path: string): boolean {
    return this.find(path) !== NONE
  }

  /** What validation needs to know of a node. */
  facts(path: string): NodeFacts | undefined {
    const node = this.store.find(path)
    if (node === NONE) return undefined
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
      childCount: c.childCount[i]!,
      dataLength: Math.max(0, c.length[i]!),
      aclId: c.acl[i]!,
      pathCrc: c.pathCrc[i]!,
      crcPrefix: c.crc[i]!,
      counted: c.counted[i]!,
    }
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

  /** Writes the 68 bytes of the stat that clients see. */
  writeStat(node: number, writer: Writer): void {
    const owner = this.owners.of(node)
    const isEphemeral = owner !== 0n && ownerKind(owner, this.#options) === 'ephemeral'
    writeStat(this.store, node, isEphemeral ? owner : 0n, writer)
  }

  /** Writes what a snapshot has behind a node's data. */
  writeStored(node: number, writer: Writer): void {
    writeStored(this.store, node, this.owners.of(node), writer)
  }

  /** Writes a node's data with its length, null as null. */
  writeData(node: number, writer: Writer): void {
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    const length = c.length[i]!
    writer.int(length)
    if (length > 0) writer.range(this.store.dataViewOf(node), c.offset[i]!, c.offset[i]! + length)
  }

  /** A view of a node's data that holds until the next change, or null. */
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
   * Applies a transaction and returns its error number, 0 for success. `sink` hears of changes; `part` is called
   * after each part of a multi that succeeds; `hint` comes from whoever has prepared it.
   */
  apply(header: TxnHeader, txn: Txn, sink?: ChangeSink, part?: PartDone, hint?: Hint): number {
    const err = this.applyPart(header, txn, sink, part, hint)
    this.#advance(header.zxid)
    return err
  }

  /** Does what a transaction or a part of one says, and does not count it as applied. */
  applyPart(header: TxnHeader, txn: Txn, sink?: ChangeSink, part?: PartDone, hint?: Hint): number {
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
        return this.remove(header.zxid, txn.path, sink, hint?.place)
      case OpCode.setData:
      case OpCode.reconfig:
        return this.#setData(header, txn, sink, hint)
      case OpCode.setACL:
        return this.#setACL(header.zxid, txn.path, txn.acl, txn.version)
      case OpCode.multi:
        return applyMulti(this, header, txn, sink, part)
      case OpCode.closeSession:
        return applyClose(this, header, txn, sink)
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
    for (const walker of this.#walkers) walker.applied(zxid)
  }

  /** A transaction begins that is applied in steps: until `arrive` the tree is halfway, and nobody may read it. */
  setOut(): void {
    this.#halfway = true
    this.#quotaKeeper.putOff()
  }

  /** Counts what the transaction has to have counted, so many nodes in a step. */
  countInSteps(nodes: number): Generator<void> {
    return this.#quotaKeeper.count(nodes)
  }

  arrive(zxid: Zxid): void {
    this.#advance(zxid)
    this.#halfway = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const action of waiting) action()
  }

  /** Whether a transaction is applied in part. */
  get halfway(): boolean {
    return this.#halfway
  }

  /** Runs once the tree is what it is after some transaction: now, or when the one that is applied in steps is through. */
  whenWhole(action: () => void): void {
    if (this.#halfway) this.#waiting.push(action)
    else action()
  }

  #create(
    header: TxnHeader,
    txn: { path: string; data: Uint8Array | null; acl: readonly ACL[]; parentCVersion: number },
    owner: bigint,
    sink?: ChangeSink,
    hint?: Hint,
  ): number {
    const place = hint?.place
    const above = place?.parent
    const parentPath = above?.path ?? parentOf(txn.path)
    const parent = this.#at(parentPath, above)
    if (parent === NONE || this.#isLater(parent, header.zxid)) return ErrorCode.NONODE
    // A snapshot may hold the node and yet an earlier state of its parent, which was written before.
    this.#advanceParent(parent, parentPath, header.zxid, txn.parentCVersion)
    const node = this.store.add(txn.path, parent, place?.hash)
    if (node === NONE) {
      const existing = this.store.find(txn.path)
      if (!this.#isLater(existing, header.zxid)) this.#replaceAcl(existing, txn.acl)
      return ErrorCode.NODEEXISTS
    }
    if (place !== undefined) place.at = node
    for (const walker of this.#walkers) walker.added(node, txn.path)
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    c.czxid[i] = c.mzxid[i] = c.pzxid[i] = header.zxid
    c.ctime[i] = c.mtime[i] = header.time
    c.acl[i] = this.acls.use(txn.acl)
    this.store.setData(node, txn.data)
    if (owner !== 0n) this.owners.set(node, owner)
    if (this.#options.digest) {
      this.#digest.hash(node, txn.path, txn.data, place === undefined ? undefined : hint!.crc)
      this.#changed(node, txn.path)
    }
    this.#quotaKeeper.created(txn.path, txn.data?.length ?? 0)
    sink?.created(txn.path, this.aclOf(node), parentPath, this.aclOf(parent))
    return ErrorCode.OK
  }

  #at(path: string, place: Place | undefined): number {
    return place === undefined ? this.store.find(path) : this.store.findAt(place)
  }

  /**
   * Whether a node came to be after a transaction. It happens in replay only, when a snapshot that was taken while the tree
   * changed holds a node that was removed and created again meanwhile: to earlier transactions it is not there.
   */
  #isLater(node: number, zxid: Zxid): boolean {
    return this.store.columns(node).czxid[this.store.slot(node)]! > zxid
  }

  /** One child more: the counter only rises, so that a creation replayed late does not set it back. */
  #advanceParent(parent: number, path: string, zxid: Zxid, parentCVersion: number): void {
    const p = this.store.columns(parent)
    const pi = this.store.slot(parent)
    const cversion = parentCVersion === -1 ? (p.cversion[pi]! + 1) | 0 : parentCVersion
    if (cversion <= p.cversion[pi]!) return
    this.#changing(parent)
    p.cversion[pi] = cversion
    p.pzxid[pi] = zxid
    this.#changed(parent, path)
  }

  /** Removes a node as a transaction says. */
  remove(zxid: Zxid, path: string, sink?: ChangeSink, place?: Place): number {
    const above = place?.parent
    const parentPath = above?.path ?? parentOf(path)
    const parent = this.#at(parentPath, above)
    if (parent === NONE) return ErrorCode.NONODE
    const p = this.store.columns(parent)
    const pi = this.store.slot(parent)
    if (zxid > p.pzxid[pi]!) {
      this.#changing(parent)
      p.pzxid[pi] = zxid
      this.#changed(parent, parentPath)
    }
    const node = this.#at(path, place)
    if (node === NONE || this.#isLater(node, zxid)) return ErrorCode.NONODE
    invariant(this.childCount(node) === 0, 'A znode with children is never deleted.', { path, zxid })
    if (this.#options.digest) this.#digest.goes(node)
    const bytes = Math.max(0, this.store.columns(node).length[this.store.slot(node)]!)
    const acl = this.aclOf(node)
    this.acls.release(this.aclIdOf(node))
    this.owners.delete(node)
    for (const walker of this.#walkers) walker.removing(node)
    this.store.remove(node, place?.hash)
    this.#quotaKeeper.deleted(path, bytes)
    sink?.deleted(path, acl, parentPath, this.aclOf(parent))
    return ErrorCode.OK
  }

  #setData(header: TxnHeader, { path, data, version }: SetDataTxn, sink?: ChangeSink, hint?: Hint): number {
    const place = hint?.place
    const node = this.#at(path, place)
    if (node === NONE || this.#isLater(node, header.zxid)) return ErrorCode.NONODE
    this.#written = node
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    const before = Math.max(0, c.length[i]!)
    this.#changing(node)
    this.store.setData(node, data)
    c.mtime[i] = header.time
    c.mzxid[i] = header.zxid
    c.version[i] = version
    if (this.#options.digest) this.#digest.hashData(node, data, place === undefined ? undefined : hint!.crc)
    this.#changed(node, path)
    this.#quotaKeeper.resized(path, (data?.length ?? 0) - before)
    sink?.dataChanged(path, this.aclOf(node))
    return ErrorCode.OK
  }

  #setACL(zxid: Zxid, path: string, acl: readonly ACL[], version: number): number {
    const node = this.store.find(path)
    if (node === NONE || this.#isLater(node, zxid)) return ErrorCode.NONODE
    this.#changing(node)
    this.#replaceAcl(node, acl)
    this.store.columns(node).aversion[this.store.slot(node)] = version
    this.#changed(node, path)
    return ErrorCode.OK
  }

  #replaceAcl(node: number, acl: readonly ACL[]): void {
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    const id = this.acls.use(acl)
    this.acls.release(c.acl[i]!)
    c.acl[i] = id
  }

  // Digest

  #changing(node: number): void {
    if (this.#options.digest) this.#digest.changing(node)
  }

  #changed(node: number, path: string): void {
    if (this.#options.digest) this.#digest.changed(node, path)
  }

  // Snapshots

  /** Walks all nodes, parents before children, a few at a time while the tree changes. Call `done` at the end. */
  scan(): TreeCursor {
    return new TreeCursor(this)
  }

  /** Tells a walker of changes from now on. Returns what ends that. */
  join(walker: Walker): () => void {
    this.#walkers.add(walker)
    return () => this.#walkers.delete(walker)
  }

  /** Empties the tree, to be filled from a snapshot by `load` for each node and `loaded` at the end. */
  clear(): void {
    for (const path of ['/zookeeper/config', '/zookeeper/quota', '/zookeeper']) {
      this.store.remove(this.store.find(path))
    }
    for (const [id] of this.acls.entries()) this.acls.release(id)
    this.#digest.clear()
    this.#changed(this.find('/'), '/')
  }

  /** Takes one node of a snapshot. The parent must be there already: false says that it is not. */
  load(path: string, data: Uint8Array | null, aclId: number, stat: StoredStat): boolean {
    const isRoot = path === '' || path === '/'
    const parent = isRoot ? NONE : this.store.find(parentOf(path))
    if (!isRoot && parent === NONE) return false
    let node = this.find(path)
    if (node === NONE) node = this.store.add(path, parent)
    else this.#unload(node)
    const c = this.store.columns(node)
    const i = this.store.slot(node)
    // Summed as nodes come, so that no pass over all of them holds requests up at the end.
    if (this.#options.digest) this.#digest.hash(node, path, data)
    c.czxid[i] = stat.czxid
    c.mzxid[i] = stat.mzxid
    c.pzxid[i] = stat.pzxid
    c.ctime[i] = stat.ctime
    c.mtime[i] = stat.mtime
    c.version[i] = stat.version
    c.cversion[i] = stat.cversion
    c.aversion[i] = stat.aversion
    // A node that came after the table was written names a list that is not in it; its creation is in the log and sets it.
    const known = this.acls.again(aclId)
    c.acl[i] = known ? aclId : OPEN
    this.store.setData(node, data)
    if (stat.owner !== 0n) this.owners.set(node, stat.owner)
    this.#changed(node, isRoot ? '/' : path)
    const limited = quotaSubject(path, LIMITS)
    if (limited !== undefined) this.quotas.add(limited)
    return true
  }

  /** Takes nodes as `load` does, right from the bytes of a snapshot, where that is simple. */
  loading(): BulkLoad {
    return new BulkLoad(this.store, this.owners, this.acls, this.#options.digest ? this.#digest : undefined)
  }

  /** A node that was removed and created again during the walk comes twice; the later state counts. */
  #unload(node: number): void {
    if (this.#options.digest) this.#digest.goes(node)
    this.acls.unload(this.aclIdOf(node))
    this.owners.delete(node)
  }

  /** Ends the loading of a snapshot of a given zxid. */
  loaded(zxid: Zxid): void {
    for (const path of ['/zookeeper', '/zookeeper/quota', '/zookeeper/config']) {
      if (!this.has(path))
        this.#plant(
          path,
          this.store.find(parentOf(path)),
          path.endsWith('config') ? this.acls.use(READ_ACL_UNSAFE) : OPEN,
        )
    }
    this.acls.purgeUnused()
    this.lastZxid = zxid
    this.#quotaKeeper.recount()
  }

  #plant(path: string, parent: number, acl: number): void {
    const node = this.store.add(path, parent)
    this.store.setData(node, new Uint8Array(0))
    this.store.columns(node).acl[this.store.slot(node)] = acl
    if (!this.#options.digest) return
    this.#digest.hash(node, path, null)
    this.#changed(node, path)
  }
}
