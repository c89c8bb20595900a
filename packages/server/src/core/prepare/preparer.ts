import {
  ErrorCode,
  isCreateMode,
  isEphemeral,
  isSequential,
  isTtl,
  MAX_TTL,
  CONTAINER_OWNER,
  OpCode,
  ownerKind,
  parentOf,
  Perms,
  ProtocolError,
  readReconfigRequest,
  type ReconfigRequest,
  type readSetACLRequest,
  ttlOwner,
  validatePath,
  type ACL,
  type MultiOperation,
  type Reader,
} from '@zabra/protocol'
import {
  crcPrefix,
  LIMITS_NAME,
  parseQuota,
  pathCrc,
  QUOTA_ROOT,
  quotaBreach,
  STATS_NAME,
  STEP,
  type QuotaBreach,
  type Tree,
} from '../tree/index.ts'
import type { SessionId, SubTxn, Txn, Zxid } from '../types.ts'
import type { PreparedTxn, PreparerOptions, WriteRequest } from './types.ts'
import { decodeWrite, treeFieldReader, type FieldReader } from './decode.ts'
import { Arena } from './arena.ts'
import { multiInSteps, runToEnd } from './multi.ts'
import { RequestError, reject } from './request-error.ts'
import { PendingNode, PendingTree } from './pending-tree.ts'
import { sequenceNumber } from './sequence.ts'

const RESERVED = new Set(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'])
const CONFIG_NODE = '/zookeeper/config'

/**
 * Turns write requests into transactions (`PrepRequestProcessor`). It sees the tree as it will be after everything that it
 * has prepared before; the caller must log and apply what it returns in the same order, and say so with `committed`.
 */
export class Preparer {
  readonly #options: PreparerOptions
  readonly #tree: Tree
  /** What a request brings lies in bytes that are overwritten by the next ones. */
  readonly #arena = new Arena()
  readonly #fields: FieldReader
  #pending: PendingTree
  /** The node that the last operation was about. */
  #node: PendingNode | undefined
  /** The parent that was looked up last. */
  #parentBefore: PendingNode | undefined

  constructor(options: PreparerOptions) {
    this.#options = options
    this.#tree = options.tree
    this.#pending = new PendingTree(options.tree)
    this.#fields = treeFieldReader(options.tree.store, this.#arena)
  }

  /** How many nodes have changes that are not applied yet. */
  get pendingNodes(): number {
    return this.#pending.size
  }

  /** Forgets every change that is not applied: none of them will be. */
  reset(): void {
    this.#pending = new PendingTree(this.#tree)
    this.#parentBefore = undefined
  }

  /** Everything up to a zxid is applied to the tree. Forgets up to so many changes; false when there are more. */
  forgetApplied(zxid: Zxid, limit = Infinity): boolean {
    return this.#pending.forgetApplied(zxid, limit)
  }

  /**
   * Prepares a request of a client. Returns an error number for a request that cannot be decoded: it takes no zxid.
   * Every other failure is an `ErrorTxn`, or a multi that holds one, and takes its zxid.
   */
  prepare(request: WriteRequest, body: Reader, zxid: Zxid, time: number): PreparedTxn | number {
    switch (request.type) {
      case OpCode.multi:
        return runToEnd(this.multiInSteps(request, body, zxid, time))
      case OpCode.reconfig:
        return this.#reconfig(request, body, zxid, time)
      default:
        return this.#single(request, body, zxid, time)
    }
  }

  /** The first transaction of a session. */
  createSession(timeOut: number): PreparedTxn {
    return this.#done({ type: OpCode.createSession, timeOut })
  }

  /** The last transaction of a session: it goes with its ephemeral nodes, those that are still on their way included. */
  closeSession(session: SessionId, zxid: Zxid): PreparedTxn {
    return runToEnd(this.closeInSteps(session, zxid))
  }

  /** As `closeSession`, in steps. Earlier transactions may be applied between two of them, but nothing else prepared. */
  *closeInSteps(session: SessionId, zxid: Zxid): Generator<void, PreparedTxn> {
    const paths2Delete: string[] = []
    const grave = this.#pending.tombstone(session, zxid)
    for (const path of this.#pending.ephemeralsOf(session)) {
      const node = this.#pending.get(path)
      // Those that were removed while they were on their way.
      if (node?.owner !== session) continue
      this.#leave(this.#parent(path)!, zxid)
      this.#pending.removeWithSession(node, grave)
      paths2Delete.push(path)
      if (paths2Delete.length % STEP === 0) yield
    }
    return this.#done({ type: OpCode.closeSession, paths2Delete })
  }

  /** Whether a change of this path is on its way, so that the tree does not tell what becomes of it. */
  hasPendingChange(path: string): boolean {
    return this.#pending.hasPendingChange(path)
  }

  /** Removes a container or a node whose time is over, unless it has children or is neither. */
  deleteContainer(path: string, zxid: Zxid): PreparedTxn {
    try {
      const node = this.#pending.get(path)
      const parent = this.#parent(path)
      if (node === undefined || parent === undefined) return reject(ErrorCode.NONODE)
      if (node.childCount > 0) return reject(ErrorCode.NOTEMPTY)
      const kind = ownerKind(node.owner, this.#tree.options)
      if (kind !== 'container' && kind !== 'ttl') return reject(ErrorCode.BADVERSION)
      this.#removeNode(node, parent, zxid)
      return this.#done({ type: OpCode.deleteContainer, path })
    } catch (error) {
      return this.#failed(RequestError.codeOf(error))
    }
  }

  #single(request: WriteRequest, body: Reader, zxid: Zxid, time: number): PreparedTxn | number {
    let operation: MultiOperation | ({ type: typeof OpCode.setACL } & ReturnType<typeof readSetACLRequest>)
    try {
      operation = decodeWrite(request.type, body, this.#fields)
    } catch (error) {
      if (error instanceof ProtocolError) return ErrorCode.MARSHALLINGERROR
      throw error
    }
    try {
      if (operation.type === OpCode.setACL) return this.#done(this.#setACL(request, operation, zxid))
      this.#node = undefined
      const txn = this.#write(request, operation, zxid, time)
      return this.#done(txn, this.#node)
    } catch (error) {
      return this.#failed(RequestError.codeOf(error))
    }
  }

  #reconfig(request: WriteRequest, body: Reader, zxid: Zxid, time: number): PreparedTxn | number {
    let asked: ReconfigRequest
    try {
      asked = readReconfigRequest(body)
    } catch (error) {
      if (error instanceof ProtocolError) return ErrorCode.MARSHALLINGERROR
      throw error
    }
    try {
      return this.#done(this.#changeMembership(request, asked, zxid, time))
    } catch (error) {
      return this.#failed(RequestError.codeOf(error))
    }
  }

  /** The checks stand in the order of the reference. A server that stands alone has no membership to change. */
  #changeMembership(request: WriteRequest, asked: ReconfigRequest, zxid: Zxid, time: number): Txn {
    const { reconfigEnabled, reconfigure } = this.#options
    if (!reconfigEnabled) return reject(ErrorCode.RECONFIGDISABLED)
    this.#checkSession(request)
    if (reconfigure === undefined) return reject(ErrorCode.UNIMPLEMENTED)
    const text = reconfigure(asked, zxid)
    if (typeof text === 'number') return reject(text)
    const node = this.#pending.get(CONFIG_NODE)
    if (node === undefined) return reject(ErrorCode.NONODE)
    this.#checkAccess(node, Perms.WRITE, request)
    const data = new TextEncoder().encode(text)
    this.#pending.beginChange(node, zxid)
    node.version = -1
    node.mzxid = zxid
    node.mtime = time
    node.dataLength = data.length
    if (this.#tree.options.digest) node.crcPrefix = crcPrefix(node.pathCrc, data)
    this.#pending.endChange(node)
    return { type: OpCode.reconfig, path: CONFIG_NODE, data, version: -1 }
  }

  /** As `prepare`, for a multi, in steps like those of `queueClose`. */
  *multiInSteps(
    request: WriteRequest,
    body: Reader,
    zxid: Zxid,
    time: number,
  ): Generator<void, PreparedTxn | number> {
    const write = (operation: MultiOperation): SubTxn => this.#write(request, operation, zxid, time)
    const txn = yield* multiInSteps(this.#pending, body, this.#fields, write, this.#options.pack)
    if (typeof txn === 'number') return txn
    return txn.type === OpCode.error ? this.#failed(txn.err) : this.#done(txn)
  }

  #write(request: WriteRequest, operation: MultiOperation, zxid: Zxid, time: number): SubTxn {
    switch (operation.type) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
        return this.#create(request, operation, operation.type, 0, zxid, time)
      case OpCode.createTTL:
        return this.#create(request, operation, operation.type, Number(operation.ttl), zxid, time)
      case OpCode.delete:
        return this.#delete(request, operation.path, operation.version, zxid)
      case OpCode.setData:
        return this.#setData(request, operation.path, operation.data, operation.version, zxid, time)
      case OpCode.check:
        return this.#check(request, operation.path, operation.version)
      case OpCode.getData:
      case OpCode.getChildren:
        return reject(ErrorCode.MARSHALLINGERROR)
    }
  }

  #create(
    request: WriteRequest,
    {
      path: asked,
      data,
      acl,
      flags,
    }: { path: string | null; data: Uint8Array | null; acl: readonly ACL[] | null; flags: number },
    type: number,
    ttl: number,
    zxid: Zxid,
    time: number,
  ): SubTxn {
    this.#checkFlags(type, flags, ttl)
    this.#checkSession(request, isEphemeral(flags))
    if (asked === null) return reject(ErrorCode.MARSHALLINGERROR)
    if (!asked.includes('/') || asked.includes('\0')) return reject(ErrorCode.BADARGUMENTS)
    const list = this.#acceptAcl(acl, request)
    const parent = this.#parent(asked)
    if (parent === undefined) return reject(ErrorCode.NONODE)
    this.#checkAccess(parent, Perms.CREATE, request)
    const path = isSequential(flags) ? asked + sequenceNumber(parent.cversion) : asked
    if (validatePath(path) !== undefined) return reject(ErrorCode.BADARGUMENTS)
    const before = this.#pending.lookup(path)
    if (before?.exists === true) return reject(ErrorCode.NODEEXISTS)
    if (ownerKind(parent.owner, this.#tree.options) === 'ephemeral')
      return reject(ErrorCode.NOCHILDRENFOREPHEMERALS)
    this.#checkQuota(path, 1, data?.length ?? 0)
    return this.#created(request, { path, data, acl: list, flags, type, ttl }, parent, before, zxid, time)
  }

  #created(
    request: WriteRequest,
    {
      path,
      data,
      acl,
      flags,
      type,
      ttl,
    }: {
      path: string
      data: Uint8Array | null
      acl: readonly ACL[]
      flags: number
      type: number
      ttl: number
    },
    parent: PendingNode,
    before: PendingNode | undefined,
    zxid: Zxid,
    time: number,
  ): SubTxn {
    const parentCVersion = (parent.cversion + 1) | 0
    this.#pending.beginChange(parent, zxid)
    parent.childCount++
    // At the end of its range the counter stays where it is, as the tree has it when it applies this.
    if (parentCVersion > parent.cversion) {
      parent.cversion = parentCVersion
      parent.pzxid = zxid
    }
    this.#pending.endChange(parent)
    const node = (this.#node = new PendingNode(path, this.#tree.store.hash(path), acl))
    node.parent = parent
    node.czxid = node.mzxid = node.pzxid = zxid
    node.ctime = node.mtime = time
    node.dataLength = data?.length ?? 0
    if (this.#tree.options.digest) {
      node.pathCrc = pathCrc(path, parent.path, parent.pathCrc)
      node.crcPrefix = crcPrefix(node.pathCrc, data)
    }
    const container = type === OpCode.createContainer
    const timed = type === OpCode.createTTL && isTtl(flags)
    const ephemeral = !container && !timed && isEphemeral(flags)
    node.owner = container ? CONTAINER_OWNER : timed ? ttlOwner(ttl) : ephemeral ? request.sessionId : 0n
    this.#pending.create(node, before, zxid)
    if (container) return { type: OpCode.createContainer, path, data, acl, parentCVersion }
    if (timed) return { type: OpCode.createTTL, path, data, acl, parentCVersion, ttl }
    const plain = type === OpCode.create2 ? OpCode.create2 : OpCode.create
    return { type: plain, path, data, acl, ephemeral, parentCVersion }
  }

  #delete(request: WriteRequest, path: string | null, version: number, zxid: Zxid): SubTxn {
    this.#checkSession(request)
    if (path === null) return reject(ErrorCode.MARSHALLINGERROR)
    if (!path.includes('/') || path.includes('\0') || RESERVED.has(path))
      return reject(ErrorCode.BADARGUMENTS)
    const parent = this.#parent(path)
    if (parent === undefined) return reject(ErrorCode.NONODE)
    this.#checkAccess(parent, Perms.DELETE, request)
    const node = this.#pending.get(path)
    if (node === undefined) return reject(ErrorCode.NONODE)
    if (version !== -1 && version !== node.version) return reject(ErrorCode.BADVERSION)
    if (node.childCount > 0) return reject(ErrorCode.NOTEMPTY)
    this.#removeNode(node, parent, zxid)
    return { type: OpCode.delete, path }
  }

  #setData(
    request: WriteRequest,
    path: string | null,
    data: Uint8Array | null,
    version: number,
    zxid: Zxid,
    time: number,
  ): SubTxn {
    this.#checkSession(request)
    const node = this.#existing(path)
    this.#checkAccess(node, Perms.WRITE, request)
    const length = data?.length ?? 0
    if (length !== node.dataLength) this.#checkQuota(node.path, 0, length - node.dataLength)
    const next = nextVersion(node.version, version)
    this.#node = node
    this.#pending.beginChange(node, zxid)
    node.version = next
    node.mzxid = zxid
    node.mtime = time
    node.dataLength = length
    if (this.#tree.options.digest) node.crcPrefix = crcPrefix(node.pathCrc, data)
    this.#pending.endChange(node)
    return { type: OpCode.setData, path: node.path, data, version: next }
  }

  #setACL(
    request: WriteRequest,
    { path, acl, version }: ReturnType<typeof readSetACLRequest>,
    zxid: Zxid,
  ): Txn {
    this.#checkSession(request)
    if (path === null || validatePath(path) !== undefined) return reject(ErrorCode.BADARGUMENTS)
    const list = this.#acceptAcl(acl, request)
    const node = this.#pending.get(path)
    if (node === undefined) return reject(ErrorCode.NONODE)
    this.#checkAccess(node, Perms.ADMIN, request)
    const next = nextVersion(node.aversion, version)
    this.#pending.beginChange(node, zxid)
    node.aversion = next
    node.acl = list
    this.#pending.endChange(node)
    return { type: OpCode.setACL, path: node.path, acl: list, version: next }
  }

  #check(request: WriteRequest, path: string | null, version: number): SubTxn {
    this.#checkSession(request)
    const node = this.#existing(path)
    this.#checkAccess(node, Perms.READ, request)
    return { type: OpCode.check, path: node.path, version: nextVersion(node.version, version) }
  }

  /** The node at a path, whose validity need not be asked for where there is one. */
  #existing(path: string | null): PendingNode {
    if (path === null) return reject(ErrorCode.BADARGUMENTS)
    const node = this.#pending.get(path)
    if (node !== undefined) return node
    return reject(validatePath(path) === undefined ? ErrorCode.NONODE : ErrorCode.BADARGUMENTS)
  }

  #removeNode(node: PendingNode, parent: PendingNode, zxid: Zxid): void {
    this.#node = node
    node.parent = parent
    this.#leave(parent, zxid)
    this.#pending.beginChange(node, zxid)
    node.exists = false
  }

  /** One child less. */
  #leave(parent: PendingNode, zxid: Zxid): void {
    this.#pending.beginChange(parent, zxid)
    parent.childCount--
    parent.pzxid = zxid
    this.#pending.endChange(parent)
  }

  /** The parent of a path. It is often that of the path before, which need not be cut out and looked up again. */
  #parent(path: string): PendingNode | undefined {
    const last = this.#parentBefore
    if (last?.isCurrent === true && last.exists && isChild(path, last.path)) return last
    return (this.#parentBefore = this.#pending.get(parentOf(path)))
  }

  #checkFlags(type: number, flags: number, ttl: number): void {
    if (!isCreateMode(flags)) reject(ErrorCode.BADARGUMENTS)
    if (isTtl(flags)) {
      if (!this.#tree.options.extendedTypes) reject(ErrorCode.UNIMPLEMENTED)
      if (type !== OpCode.createTTL || ttl < 1 || ttl > MAX_TTL) reject(ErrorCode.BADARGUMENTS)
    } else if (type === OpCode.createTTL) {
      reject(ErrorCode.BADARGUMENTS)
    }
  }

  #checkSession({ sessionId }: WriteRequest, global = false): void {
    const err = this.#options.sessions.check(sessionId, global)
    if (err !== ErrorCode.OK) reject(err)
  }

  #checkAccess(node: PendingNode, perms: number, request: WriteRequest): void {
    if (!this.#options.acls.allows(node.acl, perms, request.identities)) reject(ErrorCode.NOAUTH)
  }

  #acceptAcl(acl: readonly ACL[] | null, request: WriteRequest): readonly ACL[] {
    const list = this.#options.acls.accept(acl, request.identities)
    if (list === 'invalid') return reject(ErrorCode.INVALIDACL)
    if (list === 'null id') return reject(ErrorCode.MARSHALLINGERROR)
    return list
  }

  /** Limits look at the use that is applied, as the reference does, not at what is on its way. */
  #checkQuota(path: string, nodes: number, bytes: number): void {
    const subject = this.#tree.quotas.deepest(path)
    if (subject === undefined) return
    const limits = this.#tree.find(`${QUOTA_ROOT}${subject}/${LIMITS_NAME}`)
    const stats = this.#tree.find(`${QUOTA_ROOT}${subject}/${STATS_NAME}`)
    if (limits === -1 || stats === -1) return
    const { enforceQuota } = this.#options
    let breach: QuotaBreach | undefined
    try {
      breach = quotaBreach(
        parseQuota(this.#tree.dataOf(limits)),
        parseQuota(this.#tree.dataOf(stats)),
        nodes,
        bytes,
      )
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      if (enforceQuota) reject(ErrorCode.MARSHALLINGERROR)
    }
    if (breach === undefined) return
    if (breach.isHard && enforceQuota) reject(ErrorCode.QUOTAEXCEEDED)
    this.#options.onQuotaExceeded?.(subject, breach)
  }

  #done(txn: Txn, place?: PendingNode): PreparedTxn {
    const digest = this.#tree.options.digest ? this.#pending.digest.value() : undefined
    return { txn, digest, node: place, crc: place === undefined ? 0 : place.crcPrefix }
  }

  #failed(err: number): PreparedTxn {
    return { txn: { type: OpCode.error, err }, digest: undefined, node: undefined, crc: 0 }
  }
}

/** The version after a change, if the expected one is the current one or -1 for any. */
function nextVersion(current: number, expected: number): number {
  if (expected !== -1 && expected !== current) return reject(ErrorCode.BADVERSION)
  return (current + 1) | 0
}

/** Whether a path is that of a child of a node other than the root. */
const isChild = (path: string, parent: string): boolean =>
  path.charCodeAt(parent.length) === 0x2f &&
  path.lastIndexOf('/') === parent.length &&
  path.startsWith(parent)
