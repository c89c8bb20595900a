import { ErrorCode, validatePath } from '@zabra/protocol'

/**
 * The tree as the ZooKeeper documentation describes it, in the simplest form: maps, copies, no pending changes, no digests. The
 * oracle of the model-based test; it shares no code with the tree but the path rules.
 */
export interface NaiveNode {
  czxid: number
  mzxid: number
  pzxid: number
  ctime: number
  mtime: number
  version: number
  creations: number
  aversion: number
  owner: 'persistent' | 'container' | { readonly ttl: number } | { readonly session: bigint }
  data: string | null
  acl: NaiveAcl
  readonly children: Set<string>
}

/** The ACLs of the model: anyone may do everything, or only read. */
export type NaiveAcl = 'open' | 'read'

export type NaiveOperation =
  | {
      readonly do: 'create'
      readonly path: string
      readonly data: string | null
      readonly acl: NaiveAcl
      readonly kind: NaiveKind
    }
  | { readonly do: 'delete'; readonly path: string; readonly version: number }
  | { readonly do: 'set'; readonly path: string; readonly data: string | null; readonly version: number }
  | { readonly do: 'acl'; readonly path: string; readonly acl: NaiveAcl; readonly version: number }
  | { readonly do: 'check'; readonly path: string; readonly version: number }
export type NaiveKind =
  | 'persistent'
  | 'ephemeral'
  | 'sequential'
  | 'ephemeral sequential'
  | 'container'
  | 'ttl'
  | 'ttl sequential'

const RESERVED = ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']

export class NaiveTree {
  nodes = new Map<string, NaiveNode>()

  constructor() {
    for (const path of RESERVED) this.nodes.set(path, blank(0, 0, '', 'open'))
    this.nodes.get('/')!.children.add('zookeeper')
    this.nodes.get('/zookeeper')!.children.add('quota').add('config')
    this.nodes.get('/zookeeper/config')!.aversion = -1
    this.nodes.get('/zookeeper/config')!.acl = 'read'
  }

  /** Runs an operation. Returns 0, or an error without a change. */
  apply(operation: NaiveOperation, session: bigint, zxid: number, time: number): number {
    switch (operation.do) {
      case 'create':
        return this.#create(operation, session, zxid, time)
      case 'delete':
        return this.#delete(operation, zxid)
      case 'set':
        return this.#set(operation, zxid, time)
      case 'acl':
        return this.#setAcl(operation)
      case 'check':
        return this.#check(operation)
    }
  }

  /** Runs all operations or none. Returns an error per part: 0 before the failure, RUNTIMEINCONSISTENCY after it. */
  multi(operations: readonly NaiveOperation[], session: bigint, zxid: number, time: number): number[] {
    const before = structuredClone(this.nodes)
    const errors: number[] = []
    for (const operation of operations) {
      errors.push(this.apply(operation, session, zxid, time))
      if (errors.at(-1) === 0) continue
      this.nodes = before
      while (errors.length < operations.length) errors.push(ErrorCode.RUNTIMEINCONSISTENCY)
      break
    }
    return errors
  }

  closeSession(session: bigint, zxid: number): void {
    for (const [path, { owner }] of this.nodes) {
      if (typeof owner === 'object' && 'session' in owner && owner.session === session)
        this.#remove(path, zxid)
    }
  }

  /** Deletes an empty container or an expired TTL node, as the server does. */
  reap(path: string, zxid: number): number {
    const node = this.nodes.get(path)
    if (node === undefined) return ErrorCode.NONODE
    if (node.children.size > 0) return ErrorCode.NOTEMPTY
    const { owner } = node
    if (owner !== 'container' && !(typeof owner === 'object' && 'ttl' in owner)) return ErrorCode.BADVERSION
    this.#remove(path, zxid)
    return 0
  }

  #create(
    { path: asked, data, acl, kind }: NaiveOperation & { do: 'create' },
    session: bigint,
    zxid: number,
    time: number,
  ): number {
    const parent = this.nodes.get(parentOf(asked))
    if (parent === undefined) return ErrorCode.NONODE
    if (parent.acl === 'read') return ErrorCode.NOAUTH
    const path = kind.endsWith('sequential') ? asked + String(parent.creations).padStart(10, '0') : asked
    if (validatePath(path) !== undefined) return ErrorCode.BADARGUMENTS
    if (this.nodes.has(path)) return ErrorCode.NODEEXISTS
    if (typeof parent.owner === 'object' && 'session' in parent.owner)
      return ErrorCode.NOCHILDRENFOREPHEMERALS
    const node = blank(zxid, time, data, acl)
    if (kind === 'container') node.owner = 'container'
    else if (kind.startsWith('ttl')) node.owner = { ttl: 1000 }
    else if (kind.startsWith('ephemeral')) node.owner = { session }
    this.nodes.set(path, node)
    parent.children.add(nameOf(path))
    parent.creations++
    parent.pzxid = zxid
    return 0
  }

  #delete({ path, version }: NaiveOperation & { do: 'delete' }, zxid: number): number {
    if (RESERVED.includes(path)) return ErrorCode.BADARGUMENTS
    const parent = this.nodes.get(parentOf(path))
    if (parent === undefined) return ErrorCode.NONODE
    if (parent.acl === 'read') return ErrorCode.NOAUTH
    const node = this.nodes.get(path)
    if (node === undefined) return ErrorCode.NONODE
    if (version !== -1 && version !== node.version) return ErrorCode.BADVERSION
    if (node.children.size > 0) return ErrorCode.NOTEMPTY
    this.#remove(path, zxid)
    return 0
  }

  #set({ path, data, version }: NaiveOperation & { do: 'set' }, zxid: number, time: number): number {
    if (validatePath(path) !== undefined) return ErrorCode.BADARGUMENTS
    const node = this.nodes.get(path)
    if (node === undefined) return ErrorCode.NONODE
    if (node.acl === 'read') return ErrorCode.NOAUTH
    if (version !== -1 && version !== node.version) return ErrorCode.BADVERSION
    Object.assign(node, { data, version: node.version + 1, mzxid: zxid, mtime: time })
    return 0
  }

  #setAcl({ path, acl, version }: NaiveOperation & { do: 'acl' }): number {
    if (validatePath(path) !== undefined) return ErrorCode.BADARGUMENTS
    const node = this.nodes.get(path)
    if (node === undefined) return ErrorCode.NONODE
    if (node.acl === 'read') return ErrorCode.NOAUTH
    if (version !== -1 && version !== node.aversion) return ErrorCode.BADVERSION
    node.acl = acl
    node.aversion++
    return 0
  }

  #check({ path, version }: NaiveOperation & { do: 'check' }): number {
    if (validatePath(path) !== undefined) return ErrorCode.BADARGUMENTS
    const node = this.nodes.get(path)
    if (node === undefined) return ErrorCode.NONODE
    return version === -1 || version === node.version ? 0 : ErrorCode.BADVERSION
  }

  #remove(path: string, zxid: number): void {
    const parent = this.nodes.get(parentOf(path))!
    this.nodes.delete(path)
    parent.children.delete(nameOf(path))
    parent.pzxid = zxid
  }
}

function blank(zxid: number, time: number, data: string | null, acl: NaiveAcl): NaiveNode {
  return {
    czxid: zxid,
    mzxid: zxid,
    pzxid: zxid,
    ctime: time,
    mtime: time,
    version: 0,
    creations: 0,
    aversion: 0,
    owner: 'persistent',
    data,
    acl,
    children: new Set(),
  }
}

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/'
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
