import { EventType, nameOf, OpCode, parentOf, type ACL } from '@zabra/protocol'
import type { LoggedTxn, SubTxn, Txn } from '@zabra/server/files'
import { storedAcl, formatAcl } from './acl.ts'
import { hasFailed } from './failed.ts'
import { formatZxid, hexOf, type PlainStat } from './records.ts'

/** A znode as a read shows it. Immutable. */
export interface NodeState {
  readonly data: string
  readonly stat: PlainStat
  readonly acl: readonly string[]
  readonly kind: 'plain' | 'container' | 'ttl'
  /** Time to live of a `ttl` node, in milliseconds. */
  readonly ttl: number
}

/** A change that watches report. */
export interface WatchEvent {
  readonly zxid: number
  readonly type: number
  readonly path: string
  /** The access list that decides which sessions are notified. */
  readonly acl: readonly string[]
}

/** How a transaction changed a path, as far as watches distinguish changes. */
export type ChangeKind = 'created' | 'deleted' | 'data' | 'acl' | 'children'

export interface PathChange {
  readonly zxid: number
  readonly change: ChangeKind
  /** The node after the change; undefined when it was deleted. */
  readonly state: NodeState | undefined
  /** The access list of the node; for a deletion, the list before it. */
  readonly acl: readonly string[]
  /** For `children`: which child was created or deleted. */
  readonly child: ChildChange | undefined
}

interface ChildChange {
  readonly name: string
  readonly came: boolean
}

export interface SessionRecord {
  readonly id: string
  readonly created: number
  readonly timeoutMs: number
  ended: number
  /** The leader's wall clock when the end of the session was prepared. */
  endedWall: number
}

/** A committed transaction, in the order in which all servers apply it. */
export interface CommittedTxn {
  readonly zxid: number
  readonly logged: LoggedTxn
}

const decoder = new TextDecoder()
const PLAIN = { acl: storedAcl('open', '')!, kind: 'plain', ttl: 0 } as const

/** The watch event for each kind of change. */
const EVENTS: Readonly<Partial<Record<ChangeKind, number>>> = {
  created: EventType.NodeCreated,
  deleted: EventType.NodeDeleted,
  data: EventType.NodeDataChanged,
  children: EventType.NodeChildrenChanged,
}

/**
 * Every state that the tree ever had, computed by applying the transactions in order to a simple tree. It implements
 * the rules of ZooKeeper and shares no code with the server. A transaction that does not fit the state before it is a
 * violation.
 */
export class TreeModel {
  readonly paths = new Map<string, PathChange[]>()
  readonly sessions = new Map<string, SessionRecord>()
  readonly violations: string[] = []
  /** Nodes that servers deleted before their time to live was over, by the leaders' clocks. */
  readonly earlyDeletions: string[] = []
  /** Every event that a watch can report, in order. */
  readonly events: WatchEvent[] = []
  /** Ephemeral nodes by owning session. */
  readonly #owned = new Map<string, Set<string>>()
  /** The paths at which an owner ever had an ephemeral node. */
  readonly #everOwned = new Map<bigint, Set<string>>()
  /** How many nodes there were below a path, by zxid: computed when it is asked for. */
  readonly #counts = new Map<string, readonly NodeCount[]>()
  /** Creation counters, as transactions carry them. */
  readonly #created = new Map<string, number>()
  readonly #children = new Map<string, Set<string>>()
  /** The children of each path at the zxid that was asked for last, and how many of its changes that includes. */
  readonly #listed = new Map<string, { zxid: number; next: number; readonly names: Set<string> }>()
  lastZxid = 0

  readonly #localSessions: boolean

  /**
   * `localSessions`: whether sessions may exist for which no transaction was logged, and which own no ephemeral nodes.
   */
  constructor(
    localSessions = false,
    reserved: readonly string[] = ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'],
  ) {
    this.#localSessions = localSessions
    for (const path of reserved) {
      this.#children.set(path, new Set())
      if (path !== '/') this.#children.get(parentOf(path))!.add(nameOf(path))
    }
    for (const path of reserved) {
      const children = this.#children.get(path)!.size
      // The counters of these nodes differ between releases; only existence and children are checked.
      this.#created.set(path, children)
      const stat = {
        czxid: 0,
        mzxid: 0,
        ctime: 0,
        mtime: 0,
        pzxid: 0,
        version: 0,
        cversion: children,
        aversion: 0,
        owner: 0n,
        dataLength: 0,
        children,
      }
      this.paths.set(path, [
        { zxid: 0, change: 'created', state: { ...PLAIN, data: '', stat }, acl: PLAIN.acl, child: undefined },
      ])
    }
  }

  apply({ zxid, logged }: CommittedTxn): void {
    this.lastZxid = zxid
    this.#counts.clear()
    const { txn, header } = logged
    const session = hexOf(header.sessionId)
    const known = this.sessions.get(session)
    if (txn.type === OpCode.createSession) {
      if (known !== undefined) this.#report(zxid, `creates session ${session} a second time`)
      this.sessions.set(session, {
        id: session,
        created: zxid,
        timeoutMs: txn.timeOut,
        ended: Infinity,
        endedWall: Infinity,
      })
      return
    }
    if (txn.type === OpCode.closeSession) {
      const paths = 'paths2Delete' in txn ? txn.paths2Delete : []
      return this.#endSession(zxid, session, header.time, paths)
    }
    if (header.sessionId !== 0n && !hasFailed(txn)) {
      if (known === undefined) {
        if (!this.#localSessions) this.#report(zxid, `belongs to session ${session}, which was never created`)
      } else if (known.ended < zxid)
        this.#report(
          zxid,
          `(${txnName(txn)}) belongs to session ${session}, which ended at ${formatZxid(known.ended)}`,
        )
    }
    if (txn.type !== OpCode.multi) return this.#applyOne(zxid, session, header.time, txn)
    if (hasFailed(txn)) return
    for (const part of txn.txns) this.#applyOne(zxid, session, header.time, part)
  }

  /** Returns the node at a zxid; undefined when it does not exist. */
  stateAt(path: string, zxid: number): NodeState | undefined {
    return this.lastChange(path, zxid)?.state
  }

  /** Returns the last change of a path up to a zxid. */
  lastChange(path: string, zxid: number): PathChange | undefined {
    const steps = this.paths.get(path)
    return steps?.[countUpTo(steps, zxid) - 1]
  }

  /** Returns the first change of a path after a zxid that fits. */
  firstChangeAfter(
    path: string,
    zxid: number,
    fits: (change: PathChange) => boolean,
  ): PathChange | undefined {
    const steps = this.paths.get(path)
    if (steps === undefined) return undefined
    for (let at = countUpTo(steps, zxid); at < steps.length; at++) if (fits(steps[at]!)) return steps[at]
    return undefined
  }

  /** Returns the names of the children of a path at a zxid, valid until the next call. */
  childrenAt(path: string, zxid: number): ReadonlySet<string> {
    let listed = this.#listed.get(path)
    // Most reads follow the one before; an earlier state is computed from the beginning.
    if (listed === undefined || listed.zxid > zxid) {
      listed = { zxid: 0, next: 0, names: new Set() }
      this.#listed.set(path, listed)
    }
    const steps = this.paths.get(path) ?? []
    const { names } = listed
    for (; listed.next < steps.length && steps[listed.next]!.zxid <= zxid; listed.next++) {
      const step = steps[listed.next]!
      if (step.change === 'created' && step.zxid > 0) names.clear()
      if (step.child === undefined) continue
      if (step.child.came) names.add(step.child.name)
      else names.delete(step.child.name)
    }
    listed.zxid = zxid
    return names
  }

  /** Returns the paths of the ephemeral nodes of an owner below a path at a zxid. */
  ephemeralsBelow(path: string, owner: bigint, zxid: number): string[] {
    const prefix = `${path}/`
    return [...(this.#everOwned.get(owner) ?? [])].filter(
      (one) => one.startsWith(prefix) && this.stateAt(one, zxid)?.stat.owner === owner,
    )
  }

  /** Returns the number of nodes below a path at a zxid. */
  countBelow(path: string, zxid: number): number {
    let counts = this.#counts.get(path)
    if (counts === undefined) this.#counts.set(path, (counts = this.#countsBelow(path)))
    const at = countUpTo(counts, zxid)
    return at === 0 ? 0 : counts[at - 1]!.nodes
  }

  #countsBelow(path: string): NodeCount[] {
    const changes: NodeCount[] = []
    for (const one of this.pathsBelow(path)) {
      let before = 0
      for (const { zxid, state } of this.paths.get(one)!) {
        const nodes = state === undefined ? 0 : 1
        if (nodes !== before) changes.push({ zxid, nodes: nodes - before })
        before = nodes
      }
    }
    let sum = 0
    return changes.sort((a, b) => a.zxid - b.zxid).map(({ zxid, nodes }) => ({ zxid, nodes: (sum += nodes) }))
  }

  /** Yields every path below another one at which a node ever existed. */
  *pathsBelow(path: string): Generator<string> {
    const prefix = `${path}/`
    for (const one of this.paths.keys()) if (one.startsWith(prefix)) yield one
  }

  /** Returns the paths of all nodes that exist at the end. */
  existingPaths(): string[] {
    return [...this.paths].filter(([, steps]) => steps.at(-1)!.state !== undefined).map(([path]) => path)
  }

  #applyOne(zxid: number, session: string, time: number, txn: SubTxn): void {
    switch (txn.type) {
      case OpCode.create:
      case OpCode.create2:
        return this.#create(
          zxid,
          session,
          time,
          txn,
          txn.ephemeral ? BigInt.asIntN(64, BigInt(`0x${session}`)) : 0n,
        )
      case OpCode.createContainer:
      case OpCode.createTTL:
        // Clients see no owner for container and TTL nodes.
        return this.#create(zxid, session, time, txn, 0n)
      case OpCode.deleteContainer:
        this.#checkDeletion(zxid, time, txn.path)
        return this.#delete(zxid, txn.path)
      case OpCode.delete:
        return this.#delete(zxid, txn.path)
      case OpCode.setData:
      case OpCode.reconfig: {
        const node = this.#existing(zxid, txn.path)
        if (node === undefined) return
        if (txn.version !== node.stat.version + 1 && !txn.path.startsWith('/zookeeper'))
          this.#report(zxid, `sets ${txn.path} to version ${txn.version} when it has ${node.stat.version}`)
        const data = txn.data === null ? '' : decoder.decode(txn.data)
        const { version } = txn
        const stat = { ...node.stat, mzxid: zxid, mtime: time, version, dataLength: txn.data?.length ?? 0 }
        return this.#addChange(txn.path, zxid, 'data', { ...node, data, stat })
      }
      case OpCode.setACL: {
        const node = this.#existing(zxid, txn.path)
        if (node !== undefined)
          this.#addChange(txn.path, zxid, 'acl', {
            ...node,
            acl: formatAcl(txn.acl),
            stat: { ...node.stat, aversion: txn.version },
          })
        return
      }
      case OpCode.check:
      case OpCode.error:
    }
  }

  #create(
    zxid: number,
    session: string,
    time: number,
    txn: {
      type: number
      path: string
      data: Uint8Array | null
      acl: readonly ACL[]
      parentCVersion: number
      ttl?: number
    },
    owner: bigint,
  ): void {
    const { path } = txn
    if (this.#currentState(path) !== undefined) this.#report(zxid, `creates ${path}, which exists`)
    const parent = parentOf(path)
    const above = this.#existing(zxid, parent)
    if (above === undefined) return
    if (above.stat.owner > 0n) this.#report(zxid, `creates ${path} below an ephemeral node`)
    if (owner !== 0n) {
      // The user of a local session is stored before the session becomes global.
      const isUser = this.#localSessions && path.startsWith('/zookeeper/sessions/')
      if (!isUser && !this.sessions.has(session))
        this.#report(zxid, `creates ${path} for session ${session}, which was never created`)
      const owned = this.#owned.get(session)
      if (owned === undefined) this.#owned.set(session, new Set([path]))
      else owned.add(path)
      const everOwned = this.#everOwned.get(owner)
      if (everOwned === undefined) this.#everOwned.set(owner, new Set([path]))
      else everOwned.add(path)
    }
    const counter = (this.#created.get(parent) ?? 0) + 1
    if (
      txn.parentCVersion !== -1 &&
      txn.parentCVersion !== counter &&
      !parent.startsWith('/zookeeper') &&
      parent !== '/'
    )
      this.#report(zxid, `creates ${path} as child ${txn.parentCVersion} of its parent, expected ${counter}`)
    this.#created.set(parent, txn.parentCVersion === -1 ? counter : txn.parentCVersion)
    this.#created.set(path, 0)
    this.#children.set(path, new Set())
    const dataLength = txn.data?.length ?? 0
    const stat = {
      czxid: zxid,
      mzxid: zxid,
      ctime: time,
      mtime: time,
      pzxid: zxid,
      version: 0,
      cversion: 0,
      aversion: 0,
      owner,
      dataLength,
      children: 0,
    }
    const data = txn.data === null ? '' : decoder.decode(txn.data)
    const kind =
      txn.type === OpCode.createTTL ? 'ttl' : txn.type === OpCode.createContainer ? 'container' : 'plain'
    const state = { data, stat, acl: formatAcl(txn.acl), kind, ttl: txn.ttl ?? 0 } as const
    this.#addChange(path, zxid, 'created', state)
    this.#addChildChange(zxid, parent, nameOf(path), true)
  }

  #delete(zxid: number, path: string): void {
    const node = this.#existing(zxid, path)
    if (node === undefined) return
    if (this.#children.get(path)!.size > 0) this.#report(zxid, `deletes ${path}, which has children`)
    this.#owned.get(hexOf(node.stat.owner))?.delete(path)
    this.#children.delete(path)
    this.#addChange(path, zxid, 'deleted', undefined)
    this.#addChildChange(zxid, parentOf(path), nameOf(path), false)
  }

  #addChildChange(zxid: number, parent: string, name: string, came: boolean): void {
    const names = this.#children.get(parent)
    const node = this.#currentState(parent)
    if (names === undefined || node === undefined) return
    if (came) names.add(name)
    else names.delete(name)
    // The cversion in a Stat counts creations and deletions; transactions carry only creations.
    const cversion = this.#created.get(parent)! * 2 - names.size
    const { czxid, mzxid, ctime, mtime, version, aversion, owner, dataLength } = node.stat
    const stat = {
      czxid,
      mzxid,
      ctime,
      mtime,
      pzxid: zxid,
      version,
      cversion,
      aversion,
      owner,
      dataLength,
      children: names.size,
    }
    this.#addChange(parent, zxid, 'children', withStat(node, stat), { name, came })
  }

  #endSession(zxid: number, session: string, time: number, paths: readonly string[]): void {
    const known = this.sessions.get(session)
    // A leader removes the user of a session that was lost while it became global.
    if (known === undefined && !this.#owned.has(session))
      return this.#report(zxid, `ends session ${session}, which was never created`)
    if (known !== undefined) {
      if (known.ended < Infinity) return this.#report(zxid, `ends session ${session} a second time`)
      known.ended = zxid
      known.endedWall = time
    }
    const owned = [...(this.#owned.get(session) ?? [])].sort()
    const listed = [...paths].sort()
    if (owned.join() !== listed.join())
      this.#report(
        zxid,
        `ends session ${session} with the nodes [${listed.join(', ')}] when it owns [${owned.join(', ')}]`,
      )
    for (const path of paths) this.#delete(zxid, path)
    this.#owned.delete(session)
  }

  /** Checks deletions that servers initiate: empty containers and expired TTL nodes. */
  #checkDeletion(zxid: number, time: number, path: string): void {
    const node = this.#currentState(path)
    if (node === undefined) return
    if (node.kind === 'plain') this.#report(zxid, `deletes ${path} as if it were a container`)
    if (node.kind === 'container' && this.#created.get(path) === 0)
      this.#report(zxid, `deletes the container ${path}, which never had a child`)
    const age = time - node.stat.mtime
    if (node.kind === 'ttl' && age < node.ttl)
      this.earlyDeletions.push(
        `Transaction ${formatZxid(zxid)} deletes ${path} ${age} ms after it was written, with a time to live of ${node.ttl} ms`,
      )
  }

  #addChange(
    path: string,
    zxid: number,
    change: ChangeKind,
    state: NodeState | undefined,
    child?: ChildChange,
  ): void {
    const steps = this.paths.get(path)
    const { acl } = state ?? steps?.at(-1)?.state ?? { acl: [] }
    const step = { zxid, change, state, acl, child }
    const type = EVENTS[change]
    if (type !== undefined) this.events.push({ zxid, type, path, acl })
    if (steps === undefined) this.paths.set(path, [step])
    else steps.push(step)
  }

  #currentState(path: string): NodeState | undefined {
    return this.paths.get(path)?.at(-1)?.state
  }

  #existing(zxid: number, path: string): NodeState | undefined {
    const state = this.#currentState(path)
    if (state === undefined) this.#report(zxid, `changes ${path}, which does not exist`)
    return state
  }

  #report(zxid: number, what: string): void {
    this.violations.push(`Transaction ${formatZxid(zxid)} ${what}`)
  }
}

/** Returns a node with another Stat. Field by field: a spread object costs several times as much. */
export const withStat = ({ data, acl, kind, ttl }: NodeState, stat: PlainStat): NodeState => ({
  data,
  stat,
  acl,
  kind,
  ttl,
})

interface NodeCount {
  readonly zxid: number
  readonly nodes: number
}

/** Returns how many changes of a path were made up to a zxid. */
function countUpTo(steps: readonly { readonly zxid: number }[], zxid: number): number {
  let [low, high] = [0, steps.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (steps[middle]!.zxid <= zxid) low = middle + 1
    else high = middle
  }
  return low
}

function txnName(txn: Txn): string {
  if (txn.type === OpCode.multi) return `multi of ${Array.from(txn.txns, ({ type }) => type).join(', ')}`
  return `type ${txn.type}`
}
