import { ErrorCode, OPEN_ACL_UNSAFE, Perms, type ACL } from '@zabra/protocol'
import {
  belongsToSessionUsers,
  LIMITS_NAME,
  parseQuota,
  QUOTA_ROOT,
  quotaBreach,
  STATS_NAME,
  type QuotaBreach,
  type Tree,
} from '../tree/index.ts'
import type { Zxid } from '../types.ts'
import { isValidPath } from '../valid-path.ts'
import { PendingNode, PendingTree } from './pending-tree.ts'
import { reject } from './request-error.ts'
import type { PreparerOptions, WriteRequest } from './types.ts'

const QUOTA_FOLDER = `${QUOTA_ROOT}/`

/**
 * Characters of the identities in all access control lists of one request. An `auth` entry of a few bytes stands for all identities of
 * its client.
 */
export const MAX_ACL_CHARS = 2 ** 21

/** Returns the characters of the identities in a list. The open one is stored once. */
export const aclCharsOf = (acl: readonly ACL[]): number =>
  acl === OPEN_ACL_UNSAFE ? 0 : acl.reduce((sum, { id }) => sum + id.scheme!.length + id.id!.length, 0)

/** What the operations share while they validate writes: the pending tree, and the checks of sessions, ACLs and quotas. */
export class PrepareContext {
  readonly options: PreparerOptions
  readonly tree: Tree
  readonly pending: PendingTree

  constructor(options: PreparerOptions) {
    this.options = options
    this.tree = options.tree
    this.pending = new PendingTree(options.tree, options.changes)
  }

  /** Rejects a write of a session that has ended, has moved, or is not global where the write needs a global one. */
  checkSession({ sessionId }: WriteRequest, global = false): void {
    const err = this.options.sessions.check(sessionId, global)
    if (err !== ErrorCode.OK) reject(err)
  }

  checkAccess(node: PendingNode, perms: number, request: WriteRequest): void {
    if (!this.options.acls.allows(node.acl, perms, request.identities)) reject(ErrorCode.NOAUTH)
  }

  /**
   * Rejects a change of `/zookeeper/sessions`, or below, by anyone but the server and its super user, whatever the lists there say.
   * Returns whether the path is one of these.
   */
  checkSessionUsers(path: string, { identities }: WriteRequest): boolean {
    if (!belongsToSessionUsers(path)) return false
    if (!identities.some(({ scheme }) => scheme === 'super')) reject(ErrorCode.NOAUTH)
    return true
  }

  /**
   * Rejects a change of a quota by a client that may not administer the subtree that it limits; if that does not exist, the
   * deepest node above it. `/zookeeper/quota` itself counts as the quota of the root: with its access list all others are taken away.
   */
  checkQuotaOwner(path: string, request: WriteRequest): void {
    if (this.options.quotaRequiresAdmin !== true) return
    if (path !== QUOTA_ROOT && !path.startsWith(QUOTA_FOLDER)) return
    const name = path.endsWith(`/${LIMITS_NAME}`)
      ? LIMITS_NAME
      : path.endsWith(`/${STATS_NAME}`)
        ? STATS_NAME
        : ''
    const subject = path.slice(QUOTA_ROOT.length, name === '' ? path.length : -name.length - 1)
    this.checkAccess(this.#deepestNodeOf(subject), Perms.ADMIN, request)
  }

  /** Returns the node of a path, or the deepest one above it. By bisection: a path may have thousands of levels. */
  #deepestNodeOf(path: string): PendingNode {
    const ends: number[] = []
    for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1)) ends.push(end)
    if (path.length > 1) ends.push(path.length)
    let [node, low, high] = [this.pending.get('/')!, 0, ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const found = this.pending.get(path.slice(0, ends[middle]))
      if (found === undefined) high = middle
      else [node, low] = [found, middle + 1]
    }
    return node
  }

  /** Returns the ACL to store for a requested one. */
  acceptAcl(acl: readonly ACL[] | null, request: WriteRequest): readonly ACL[] {
    const accepted = this.options.acls.accept(acl, request.identities)
    if (accepted === 'invalid') return reject(ErrorCode.INVALIDACL)
    if (accepted === 'null id') return reject(ErrorCode.MARSHALLINGERROR)
    if (aclCharsOf(accepted) > MAX_ACL_CHARS) return reject(ErrorCode.INVALIDACL)
    return accepted
  }

  /** Rejects a list that the tree does not have while the others take too much memory: all members hold them in their heaps. */
  limitAcls(acl: readonly ACL[]): void {
    const { maxAclBytes = Infinity, onAclsFull } = this.options
    const { acls } = this.tree
    if (acls.bytes <= maxAclBytes || acl === OPEN_ACL_UNSAFE || acls.idOf(acl) !== undefined) return
    onAclsFull?.()
    reject(ErrorCode.QUOTAEXCEEDED)
  }

  /** Rejects a write that makes the data larger while the memory is full: all members hold all data in their memory. */
  checkMemory(): void {
    if (this.options.isMemoryFull?.() !== true) return
    this.options.onMemoryFull?.()
    reject(ErrorCode.QUOTAEXCEEDED)
  }

  /** Rejects a write beyond a hard quota. As in Apache ZooKeeper, quotas count applied changes, not pending ones. */
  checkQuota(path: string, nodes: number, bytes: number): void {
    const subject = this.tree.quotas.deepest(path)
    if (subject === undefined) return
    const limits = this.tree.find(`${QUOTA_ROOT}${subject}/${LIMITS_NAME}`)
    const stats = this.tree.find(`${QUOTA_ROOT}${subject}/${STATS_NAME}`)
    if (limits === -1) return
    const { enforceQuota } = this.options
    let breach: QuotaBreach | undefined
    try {
      const allowed = parseQuota(this.tree.dataOf(limits))
      if (stats === -1) return
      breach = quotaBreach(allowed, parseQuota(this.tree.dataOf(stats)), nodes, bytes)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      if (enforceQuota) reject(ErrorCode.MARSHALLINGERROR)
    }
    if (breach === undefined) return
    if (breach.isHard && enforceQuota) {
      this.tree.options.traffic?.refused(subject)
      reject(ErrorCode.QUOTAEXCEEDED)
    }
    this.options.onQuotaExceeded?.(subject, breach)
  }

  /** Returns the node at a path. A path is validated only if it has no node. */
  existing(path: string | null): PendingNode {
    if (path === null) return reject(ErrorCode.BADARGUMENTS)
    const node = this.pending.get(path)
    if (node !== undefined) return node
    return reject(isValidPath(path) ? ErrorCode.NONODE : ErrorCode.BADARGUMENTS)
  }

  /** Returns a new node, to be filled and passed to `pending.create`. */
  newNode(path: string, acl: readonly ACL[], parent: PendingNode): PendingNode {
    const node = new PendingNode(path, this.tree.store.hash(path), acl)
    node.parent = parent
    return node
  }

  removeNode(node: PendingNode, parent: PendingNode, zxid: Zxid): void {
    node.parent = parent
    this.removeChild(parent, zxid)
    this.pending.beginChange(node, zxid)
    node.exists = false
  }

  /** Counts one child less for a parent. */
  removeChild(parent: PendingNode, zxid: Zxid): void {
    this.pending.beginChange(parent, zxid)
    parent.childCount--
    parent.pzxid = zxid
    this.pending.endChange(parent)
  }
}
