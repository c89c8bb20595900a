import { EventType, KeeperState, Perms, Writer, Xid, writeWatcherEvent, type ACL } from '@zabra/protocol'
import type { AclRules } from '../auth/index.ts'
import { Histogram } from '../histogram.ts'
import type { ChangeSink } from '../tree/index.ts'
import type { Identity, Zxid } from '../types.ts'
import type { Watcher } from './watch-table.ts'
import type { Notify, WatchManager } from './watch-manager.ts'

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
  /** Notifications delivered, and their bytes. */
  delivered = 0
  bytes = 0
  /** Watchers per event, by type of event. */
  readonly recipients = {
    created: new Histogram(),
    deleted: new Histogram(),
    changed: new Histogram(),
    children: new Histogram(),
  }

  /** Watched ancestors of changed paths that were looked at, ever: a change below thousands of them takes a millisecond. */
  get ancestorsVisited(): number {
    return this.#watches.ancestorsVisited
  }

  /** Resets the statistics. */
  resetStats(): void {
    this.bytes = 0
    for (const histogram of Object.values(this.recipients)) histogram.reset()
  }

  constructor(watches: WatchManager<L>, rules: AclRules) {
    this.#watches = watches
    this.#rules = rules
  }

  created(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { recipients } = this
    this.#count(recipients.created, () =>
      this.#watches.fireCreated(path, this.#notifierOf(EventType.NodeCreated, path, acl)),
    )
    this.#childrenChanged(parent, parentAcl)
  }

  deleted(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { recipients } = this
    this.#count(recipients.deleted, () =>
      this.#watches.fireDeleted(path, this.#notifierOf(EventType.NodeDeleted, path, acl)),
    )
    this.#childrenChanged(parent, parentAcl)
  }

  dataChanged(path: string, acl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { recipients } = this
    this.#count(recipients.changed, () =>
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
    const notifyReaders = this.#notifierOf(EventType.NodeChildrenChanged, path, acl)
    this.#count(this.recipients.children, () => this.#watches.fireChildrenChanged(path, notifyReaders))
  }

  #count(recipients: Histogram, fire: () => void): void {
    const before = this.delivered
    fire()
    if (this.delivered > before) recipients.add(this.delivered - before)
  }

  #deliver(watcher: L, frame: Uint8Array): void {
    watcher.deliver(frame)
    this.delivered++
    this.bytes += frame.length
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
