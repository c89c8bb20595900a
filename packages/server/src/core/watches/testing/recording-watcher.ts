import { EventType, OPEN_ACL_UNSAFE, Reader, readWatcherEvent, type ACL } from '@zabra/protocol'
import { AclRules } from '../../auth/index.ts'
import { runToEnd } from '../../steps.ts'
import type { Identity } from '../../types.ts'
import { WatchNotifier, WatchManager, type NotifiedWatcher } from '../index.ts'

/** A connection that records its notifications. */
export class RecordingWatcher implements NotifiedWatcher {
  readonly watchedPaths = new Set<string>()
  readonly zxids: number[] = []
  /** The frames as delivered: views that the next event overwrites. */
  readonly views: Uint8Array[] = []
  identities: readonly Identity[]
  #events: string[] = []
  #bytes: string[] = []

  constructor(identities: readonly Identity[] = []) {
    this.identities = identities
  }

  deliver(frame: Uint8Array): void {
    const reader = new Reader(frame)
    const [length, xid, zxid, err] = [reader.int(), reader.int(), reader.longNumber(), reader.int()]
    const { type, state, path } = readWatcherEvent(reader)
    if (length !== frame.length - 4 || reader.remaining !== 0) throw new Error('Expected one whole frame')
    if (xid !== -1 || err !== 0 || state !== 3)
      throw new Error(`Got xid ${xid}, error ${err}, state ${state}`)
    this.zxids.push(zxid)
    this.views.push(frame)
    this.#bytes.push(hex(frame))
    this.#events.push(`${type} ${path}`)
  }

  /** Returns the events since the last call, each as `type path`. */
  takeEvents(): string[] {
    return this.#events.splice(0)
  }

  /** Returns the frames since the last call, in hexadecimal. */
  takeFrames(): string[] {
    return this.#bytes.splice(0)
  }
}

export const CREATED = EventType.NodeCreated
export const DELETED = EventType.NodeDeleted
export const CHANGED = EventType.NodeDataChanged
export const CHILDREN = EventType.NodeChildrenChanged

/** A watch manager and its notifier, for nodes that anyone may read unless an event has another ACL. */
export class WatchFixture {
  readonly watches = new WatchManager<RecordingWatcher>()
  readonly notifier: WatchNotifier<RecordingWatcher>

  constructor(options: { readonly skipACL: boolean } = { skipACL: false }) {
    this.notifier = new WatchNotifier<RecordingWatcher>(this.watches, new AclRules(options))
  }

  created(
    path: string,
    acl: readonly ACL[] = OPEN_ACL_UNSAFE,
    parentAcl: readonly ACL[] = OPEN_ACL_UNSAFE,
  ): void {
    this.notifier.created(path, acl, parentOf(path), parentAcl)
    runToEnd(this.notifier.notifyInSteps())
  }
  deleted(
    path: string,
    acl: readonly ACL[] = OPEN_ACL_UNSAFE,
    parentAcl: readonly ACL[] = OPEN_ACL_UNSAFE,
  ): void {
    this.notifier.deleted(path, acl, parentOf(path), parentAcl)
    runToEnd(this.notifier.notifyInSteps())
  }
  changed(path: string, acl: readonly ACL[] = OPEN_ACL_UNSAFE): void {
    this.notifier.dataChanged(path, acl)
    runToEnd(this.notifier.notifyInSteps())
  }
}

export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/'

export const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
