import { crc32 } from '@zabra/protocol'
import { beginsWith } from '../begins-with.ts'
import { OPEN_ACL_ID, type AclTable } from './acl-table.ts'
import { pathCrc, type TreeDigest } from './digest.ts'
import { NONE, type NodeStore } from './node-store.ts'
import type { OwnerIndex } from './owners.ts'

/** Bytes that follow the data of a node in a snapshot: ACL id, five longs, three ints, owner. */
export const NODE_TAIL_BYTES = 68

/**
 * Loads the nodes of a snapshot from its bytes.
 *
 * Optimised: no object per stat, no view of the data, no lookup of the parent for siblings and first children, the digest computed
 * from the bytes, ACL uses counted in groups.
 * Why: a start reads every znode, and these were half of its time. Tested against `Tree.loadNode`, in `bulk-load.test.ts`.
 * Rules: unusual nodes are left to `Tree.loadNode`. Call `flushAclUses` before the tree is changed in another way.
 */
export class BulkLoader {
  readonly #store: NodeStore
  readonly #owners: OwnerIndex
  readonly #acls: AclTable
  readonly #digest: TreeDigest | undefined
  readonly #root: number
  /** The node loaded last, its parent, and the path of the parent. */
  #last: number
  #parent = NONE
  #parentPath = ''
  #aclId = OPEN_ACL_ID
  #uses = 0

  constructor(store: NodeStore, owners: OwnerIndex, acls: AclTable, digest: TreeDigest | undefined) {
    this.#store = store
    this.#owners = owners
    this.#acls = acls
    this.#digest = digest
    this.#root = this.#last = store.find('/')
  }

  /**
   * Loads a node whose data (`length` bytes, -1 for null) begins at `at`, followed by its other fields. Returns false, without a
   * change, when `Tree.loadNode` must load it or report what is wrong.
   */
  tryLoad(path: string, bytes: Uint8Array, view: DataView, at: number, length: number): boolean {
    const dataEnd = at + Math.max(0, length)
    if (!isOrdinary(view, dataEnd) || path.startsWith('/zookeeper/')) return false
    const aclId = long(view, dataEnd)
    if (!this.#knows(aclId) || !this.#toParentOf(path)) return false
    const node = this.#store.add(path, this.#parent)
    if (node === NONE) return false
    this.#last = node
    this.#uses++
    this.#fill(node, aclId, view, dataEnd)
    if (length >= 0) this.#store.setInitialData(node, view, at, dataEnd)
    if (this.#digest !== undefined) this.#hash(node, path, bytes, at, dataEnd)
    return true
  }

  /** Adds the pending uses to the ACL table. */
  flushAclUses(): void {
    this.#acls.retainId(this.#aclId, this.#uses)
    this.#aclId = OPEN_ACL_ID
    this.#uses = 0
  }

  /** Finds the parent of a path: most likely that of the previous node, or the previous node itself. */
  #toParentOf(path: string): boolean {
    const slash = path.lastIndexOf('/')
    if (slash < 0) return false
    if (slash > 0 && this.#parentPath.length === slash && beginsWith(path, this.#parentPath)) return true
    const parent = slash === 0 ? this.#root : this.#find(path, slash)
    if (parent === NONE) return false
    this.#parent = parent
    this.#parentPath = this.#store.pathOf(parent)
    return true
  }

  /** Looks among the ancestors of the previous node first, since a snapshot is written in pre-order. */
  #find(path: string, slash: number): number {
    const store = this.#store
    let node = this.#last
    while (store.pathOf(node).length > slash) node = store.parentOf(node)
    const above = store.pathOf(node)
    return above.length === slash && beginsWith(path, above) ? node : store.find(path.slice(0, slash))
  }

  #fill(node: number, aclId: number, view: DataView, tail: number): void {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    c.acl[i] = aclId
    c.czxid[i] = long(view, tail + 8)
    c.mzxid[i] = long(view, tail + 16)
    c.ctime[i] = long(view, tail + 24)
    c.mtime[i] = long(view, tail + 32)
    c.version[i] = view.getInt32(tail + 40)
    c.cversion[i] = view.getInt32(tail + 44)
    c.aversion[i] = view.getInt32(tail + 48)
    c.pzxid[i] = long(view, tail + 60)
    if (view.getInt32(tail + 52) !== 0 || view.getInt32(tail + 56) !== 0)
      this.#owners.set(node, view.getBigInt64(tail + 52))
  }

  #knows(id: number): boolean {
    if (id === this.#aclId) return true
    if (!this.#acls.retainId(id, 0)) return false
    this.flushAclUses()
    this.#aclId = id
    return true
  }

  /** The digest covers the same fields in nearly the same order: only pzxid is elsewhere. */
  #hash(node: number, path: string, bytes: Uint8Array, at: number, tail: number): void {
    const c = this.#store.columns(node)
    const i = this.#store.slot(node)
    const above = this.#store.columns(this.#parent).pathCrc[this.#store.slot(this.#parent)]!
    const own = pathCrc(path, this.#parentPath, above)
    c.pathCrc[i] = own
    const prefix = crc32(bytes, at, tail, own)
    c.crc[i] = prefix
    const withChange = crc32(bytes, tail + 8, tail + 24, prefix)
    const withChildren = crc32(bytes, tail + 60, tail + 68, withChange)
    const counted = crc32(bytes, tail + 24, tail + 60, withChildren)
    c.nodeDigest[i] = counted
    this.#digest!.add(counted)
  }
}

/** Returns whether all longs of a node are exact as numbers. */
function isOrdinary(view: DataView, tail: number): boolean {
  return (
    isExact(view.getInt32(tail)) &&
    isExact(view.getInt32(tail + 8)) &&
    isExact(view.getInt32(tail + 16)) &&
    isExact(view.getInt32(tail + 24)) &&
    isExact(view.getInt32(tail + 32)) &&
    isExact(view.getInt32(tail + 60))
  )
}

const isExact = (high: number): boolean => high > -0x20_0000 && high < 0x20_0000

const long = (view: DataView, at: number): number =>
  view.getInt32(at) * 0x1_0000_0000 + view.getUint32(at + 4)
