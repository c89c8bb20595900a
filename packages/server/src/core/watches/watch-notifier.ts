import { EventType, KeeperState, Perms, Writer, Xid, writeWatcherEvent, type ACL } from '@zabra/protocol'
import type { AclRules } from '../auth/index.ts'
import { Summary } from '../range.ts'
import type { ChangeSink } from '../tree/index.ts'
import type { Identity, Zxid } from '../types.ts'
import type { Watcher } from './watch-table.ts'
import type { Notify, WatchManager } from './watch-manager.ts'

/** A connection that can be told. */
export interface NotifiedWatcher extends Watcher {
  readonly identities: readonly Identity[]
  /** Takes a whole notification frame. The bytes are a view: copy them before returning. */
  deliver(frame: Uint8Array): void
}

/**
 * Turns changes of the tree into notifications. A frame is written once for each event and handed to every listener that
 * may read the node; a watch of one that may not is used up all the same.
 */
export class WatchNotifier<L extends NotifiedWatcher> implements ChangeSink {
  readonly #watches: WatchManager<L>
  readonly #rules: AclRules
  readonly #writer = new Writer(256)
  /** The transaction whose events are fired; -1 for what setWatches finds. */
  zxid: Zxid = -1
  /** Notifications delivered, and their bytes. */
  delivered = 0
  bytes = 0
  /** How many were told of each event, by its type. */
  readonly recipients = {
    created: new Summary(),
    deleted: new Summary(),
    changed: new Summary(),
    children: new Summary(),
  }

  /** Forgets what was delivered so far. */
  resetStats(): void {
    this.bytes = 0
    for (const range of Object.values(this.recipients)) range.reset()
  }

  constructor(watches: WatchManager<L>, rules: AclRules) {
    this.#watches = watches
    this.#rules = rules
  }

  created(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { recipients: told } = this
    this.#count(told.created, () =>
      this.#watches.fireCreated(path, this.#notifierOf(EventType.NodeCreated, path, acl)),
    )
    this.#childrenChanged(parent, parentAcl)
  }

  deleted(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { recipients: told } = this
    this.#count(told.deleted, () =>
      this.#watches.fireDeleted(path, this.#notifierOf(EventType.NodeDeleted, path, acl)),
    )
    this.#childrenChanged(parent, parentAcl)
  }

  dataChanged(path: string, acl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { recipients: told } = this
    this.#count(told.changed, () =>
      this.#watches.fireDataChanged(path, this.#notifierOf(EventType.NodeDataChanged, path, acl)),
    )
  }

  /** Tells one listener of what it missed, whatever it may read. */
  notify(listener: L, type: number, path: string): void {
    const zxid = this.zxid
    this.zxid = -1
    this.#deliver(listener, this.#frame(type, path))
    this.zxid = zxid
  }

  #childrenChanged(path: string, acl: readonly ACL[]): void {
    const teller = this.#notifierOf(EventType.NodeChildrenChanged, path, acl)
    this.#count(this.recipients.children, () => this.#watches.fireChildrenChanged(path, teller))
  }

  #count(told: Summary, fire: () => void): void {
    const before = this.delivered
    fire()
    if (this.delivered > before) told.add(this.delivered - before)
  }

  #deliver(listener: L, frame: Uint8Array): void {
    listener.deliver(frame)
    this.delivered++
    this.bytes += frame.length
  }

  #notifierOf(type: number, path: string, acl: readonly ACL[]): Notify<L> {
    let frame: Uint8Array | undefined
    return (listener) => {
      if (!this.#rules.allows(acl, Perms.READ, listener.identities)) return
      frame ??= this.#frame(type, path)
      this.#deliver(listener, frame)
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
