import { EventType, KeeperState, Perms, Writer, Xid, writeWatcherEvent, type ACL } from '@zabra/protocol'
import type { AclRules } from '../auth/index.ts'
import { Range } from '../range.ts'
import type { ChangeSink } from '../tree/index.ts'
import type { Identity, Zxid } from '../types.ts'
import type { Watcher } from './table.ts'
import type { Notify, Watches } from './watches.ts'

/** A connection that can be told. */
export interface Listener extends Watcher {
  readonly identities: readonly Identity[]
  /** Takes a whole notification frame. The bytes are a view: copy them before returning. */
  deliver(frame: Uint8Array): void
}

/**
 * Turns changes of the tree into notifications. A frame is written once for each event and handed to every listener that
 * may read the node; a watch of one that may not is used up all the same.
 */
export class Firing<L extends Listener> implements ChangeSink {
  readonly #watches: Watches<L>
  readonly #rules: AclRules
  readonly #writer = new Writer(256)
  /** The transaction whose events are fired; -1 for what setWatches finds. */
  zxid: Zxid = -1
  /** Notifications delivered, and their bytes. */
  delivered = 0
  bytes = 0
  /** How many were told of each event, by its type. */
  readonly told = { created: new Range(), deleted: new Range(), changed: new Range(), children: new Range() }

  /** Forgets what was delivered so far. */
  resetFigures(): void {
    this.bytes = 0
    for (const range of Object.values(this.told)) range.reset()
  }

  constructor(watches: Watches<L>, rules: AclRules) {
    this.#watches = watches
    this.#rules = rules
  }

  created(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { told } = this
    this.#count(told.created, () =>
      this.#watches.fireCreated(path, this.#teller(EventType.NodeCreated, path, acl)),
    )
    this.#childrenChanged(parent, parentAcl)
  }

  deleted(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { told } = this
    this.#count(told.deleted, () =>
      this.#watches.fireDeleted(path, this.#teller(EventType.NodeDeleted, path, acl)),
    )
    this.#childrenChanged(parent, parentAcl)
  }

  dataChanged(path: string, acl: readonly ACL[]): void {
    if (this.#watches.size === 0) return
    const { told } = this
    this.#count(told.changed, () =>
      this.#watches.fireDataChanged(path, this.#teller(EventType.NodeDataChanged, path, acl)),
    )
  }

  /** Tells one listener of what it missed, whatever it may read. */
  tell(listener: L, type: number, path: string): void {
    const zxid = this.zxid
    this.zxid = -1
    this.#deliver(listener, this.#frame(type, path))
    this.zxid = zxid
  }

  #childrenChanged(path: string, acl: readonly ACL[]): void {
    const teller = this.#teller(EventType.NodeChildrenChanged, path, acl)
    this.#count(this.told.children, () => this.#watches.fireChildrenChanged(path, teller))
  }

  #count(told: Range, fire: () => void): void {
    const before = this.delivered
    fire()
    if (this.delivered > before) told.add(this.delivered - before)
  }

  #deliver(listener: L, frame: Uint8Array): void {
    listener.deliver(frame)
    this.delivered++
    this.bytes += frame.length
  }

  #teller(type: number, path: string, acl: readonly ACL[]): Notify<L> {
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
