import { EventType, KeeperState, Perms, Writer, Xid, writeWatcherEvent, type ACL } from '@zabra/protocol'
import type { AclRules } from '../auth/index.ts'
import type { Histogram } from '../histogram.ts'
import type { ChangeSink } from '../tree/index.ts'
import type { Identity, Zxid } from '../types.ts'
import type { Watcher } from './watch-table.ts'
import type { FiredTables, Notify, WatchManager } from './watch-manager.ts'
import { WatchStats } from './watch-stats.ts'

const DATA: FiredTables = { data: true, child: false }
const CHILD: FiredTables = { data: false, child: true }
const BOTH: FiredTables = { data: true, child: true }

/** A connection that receives notifications. */
export interface NotifiedWatcher extends Watcher {
  readonly identities: readonly Identity[]
  /** Receives a notification frame. The bytes are a view: copy them before returning. */
  deliver(frame: Uint8Array): void
}

/**
 * Turns changes of the tree into notifications. Encodes one frame per event and delivers it to every watcher that may read the
 * node. A one-shot watch is removed even when its watcher may not read the node.
 */
export class WatchNotifier<L extends NotifiedWatcher> implements ChangeSink {
  readonly #watches: WatchManager<L>
  readonly #rules: AclRules
  readonly #writer = new Writer(256)
  /** The transaction whose events are being delivered; -1 for missed events, which setWatches delivers. */
  zxid: Zxid = -1
  readonly stats: WatchStats
  /** Events that are not delivered yet: one that may have very many watchers, and those behind it. */
  readonly #waiting: Generator<void>[] = []

  /** Watched ancestors of changed paths that were looked at, ever: a change below thousands of them takes a millisecond. */
  get ancestorsVisited(): number {
    return this.#watches.ancestorsVisited
  }

  /** Entries of long access control lists that were looked at, ever: two thousand take a millisecond. */
  get aclEntriesVisited(): number {
    return this.#rules.entriesVisited
  }

  constructor(watches: WatchManager<L>, rules: AclRules, stats = new WatchStats()) {
    this.#watches = watches
    this.#rules = rules
    this.stats = stats
  }

  /** Whether any node has very many watchers. */
  get hasCrowds(): boolean {
    return this.#watches.hasCrowds
  }

  /** Whether a change of a node may have very many watchers, its parent's included. */
  hasCrowd(path: string): boolean {
    return this.#watches.hasCrowd(path) || this.#watches.hasCrowd(path.slice(0, path.lastIndexOf('/')) || '/')
  }

  /** Whether events wait for `notifyInSteps`. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Delivers the events that wait. Until the last step, no client may see the change. */
  *notifyInSteps(): Generator<void> {
    for (let event = this.#waiting[0]; event !== undefined; event = this.#waiting[0]) {
      yield* event
      this.#waiting.shift()
    }
  }

  created(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    if (this.#mustWait(path)) this.#fireLater(this.stats.created, EventType.NodeCreated, path, acl, DATA)
    else
      this.#count(this.stats.created, () =>
        this.#watches.fireCreated(path, this.#notifierOf(EventType.NodeCreated, path, acl)),
      )
    this.#childrenChanged(parent, parentAcl)
  }

  deleted(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    if (this.#mustWait(path)) this.#fireLater(this.stats.deleted, EventType.NodeDeleted, path, acl, BOTH)
    else
      this.#count(this.stats.deleted, () =>
        this.#watches.fireDeleted(path, this.#notifierOf(EventType.NodeDeleted, path, acl)),
      )
    this.#childrenChanged(parent, parentAcl)
  }

  dataChanged(path: string, acl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    if (this.#mustWait(path))
      return this.#fireLater(this.stats.changed, EventType.NodeDataChanged, path, acl, DATA)
    this.#count(this.stats.changed, () =>
      this.#watches.fireDataChanged(path, this.#notifierOf(EventType.NodeDataChanged, path, acl)),
    )
  }

  /** Delivers an event that a watcher has missed, without a check of permissions. */
  notify(watcher: L, type: number, path: string): void {
    const zxid = this.zxid
    this.zxid = -1
    this.#deliver(watcher, this.#frame(type, path))
    this.zxid = zxid
  }

  #childrenChanged(path: string, acl: readonly ACL[]): void {
    if (this.#mustWait(path))
      return this.#fireLater(this.stats.children, EventType.NodeChildrenChanged, path, acl, CHILD)
    const notifyReaders = this.#notifierOf(EventType.NodeChildrenChanged, path, acl)
    this.#count(this.stats.children, () => this.#watches.fireChildrenChanged(path, notifyReaders))
  }

  #mustWait(path: string): boolean {
    return this.#waiting.length > 0 || this.#watches.hasCrowd(path)
  }

  #fireLater(
    recipients: Histogram,
    type: number,
    path: string,
    acl: readonly ACL[],
    tables: FiredTables,
  ): void {
    this.#waiting.push(this.#fireInSteps(recipients, type, path, acl, tables))
  }

  *#fireInSteps(
    recipients: Histogram,
    type: number,
    path: string,
    acl: readonly ACL[],
    tables: FiredTables,
  ): Generator<void> {
    let frame: Uint8Array | undefined
    let delivered = 0
    yield* this.#watches.fireInSteps(path, tables, (watcher) => {
      if (!this.#rules.allows(acl, Perms.READ, watcher.identities)) return
      // A copy: other events are encoded between two steps.
      frame ??= this.#frame(type, path).slice()
      this.#deliver(watcher, frame)
      delivered++
    })
    if (delivered > 0) recipients.add(delivered)
  }

  #count(recipients: Histogram, fire: () => void): void {
    const stats = this.stats
    const before = stats.delivered
    fire()
    if (stats.delivered > before) recipients.add(stats.delivered - before)
  }

  #deliver(watcher: L, frame: Uint8Array): void {
    watcher.deliver(frame)
    this.stats.delivered++
    this.stats.bytes += frame.length
  }

  #notifierOf(type: number, path: string, acl: readonly ACL[]): Notify<L> {
    let frame: Uint8Array | undefined
    return (watcher) => {
      if (!this.#rules.allows(acl, Perms.READ, watcher.identities)) return
      frame ??= this.#frame(type, path)
      this.#deliver(watcher, frame)
    }
  }

  #frame(type: number, path: string): Uint8Array {
    const w = this.#writer
    w.reset()
    const mark = w.beginFrame()
    w.int(Xid.notification)
    w.longNumber(this.zxid)
    w.int(0)
    writeWatcherEvent(w, { type, state: KeeperState.SyncConnected, path })
    w.endFrame(mark)
    return w.bytes()
  }
}
