import { parentOf, readWatcherEvent, type EventType, type Reader } from '@zabra/protocol'
import type { NodeEventType, Zxid } from '../types.ts'

export type WatchKind = 'data' | 'exists' | 'children' | 'persistent' | 'recursive'
export const watchKinds: readonly WatchKind[] = ['data', 'exists', 'children', 'persistent', 'recursive']

/** A watch event, with the server path. */
export interface ServerEvent {
  readonly type: NodeEventType
  readonly path: string
  readonly zxid: Zxid | undefined
  readonly order: number
}

/** A listener on one path with one kind of watch. */
export interface WatchListener {
  /** The client that created it. */
  readonly owner: object
  /** Removes the watch. */
  close(): Promise<void>
  /** Called with a change. A one-shot listener has been removed from the registry by then. */
  notify(event: ServerEvent): void
  /** Events may be missing. */
  resync(reason: 'reconnected' | 'newSession', order: number): void
  /** No further event follows. */
  end(error: Error | undefined): void
}

// Numbers instead of `EventType` of the protocol, which a page would load too. `satisfies` checks that they agree.
const types: Readonly<Record<number, NodeEventType>> = {
  1: 'nodeCreated',
  2: 'nodeDeleted',
  3: 'nodeDataChanged',
  4: 'nodeChildrenChanged',
} satisfies Record<typeof EventType.NodeCreated, 'nodeCreated'> &
  Record<typeof EventType.NodeDeleted, 'nodeDeleted'> &
  Record<typeof EventType.NodeDataChanged, 'nodeDataChanged'> &
  Record<typeof EventType.NodeChildrenChanged, 'nodeChildrenChanged'>

/**
 * Decodes the notification at `reader`, with the halves of the zxid in its header. Returns undefined for events
 * without a znode: they report connection states, which the client tracks itself.
 */
export function readEvent(
  reader: Reader,
  zxidHigh: number,
  zxidLow: number,
  nextOrder: () => number,
): ServerEvent | undefined {
  const { type, path } = readWatcherEvent(reader)
  const name = types[type]
  if (name === undefined || path?.startsWith('/') !== true) return undefined
  const hasZxid = zxidHigh >= 0 && (zxidHigh > 0 || zxidLow !== 0)
  const zxid = hasZxid ? (((BigInt(zxidHigh) << 32n) | BigInt(zxidLow >>> 0)) as Zxid) : undefined
  return { type: name, path, zxid, order: nextOrder() }
}

type Listeners = Map<string, Set<WatchListener>>
const NO_LISTENERS: Partial<Record<WatchKind, Listeners>> = Object.freeze({})

/**
 * The watch listeners of a session by kind and path. Keys are server paths, so that clients with different chroots
 * share one watch on the server.
 */
export class WatchRegistry {
  /** Created on demand: most clients use few kinds, and some programs have thousands of clients. */
  #listeners: Partial<Record<WatchKind, Listeners>> = NO_LISTENERS
  /**
   * No recursive watch had a longer path: a hostile server may send an event with a path of megabytes, whose longer ancestors
   * are not looked up.
   */
  #longestRecursive = 0
  #leftovers: Set<string> | undefined
  /** Number of requests in flight that will set a watch, by kind and path. */
  #pending: Map<string, number> | undefined

  add(kind: WatchKind, path: string, listener: WatchListener): void {
    if (this.#listeners === NO_LISTENERS) this.#listeners = {}
    if (kind === 'recursive') this.#longestRecursive = Math.max(this.#longestRecursive, path.length)
    const map = (this.#listeners[kind] ??= new Map())
    const listeners = map.get(path)
    if (listeners === undefined) map.set(path, new Set([listener]))
    else listeners.add(listener)
  }

  /** Returns true if the listener was registered and was the last of its kind on the path. */
  remove(kind: WatchKind, path: string, listener: WatchListener): boolean {
    const map = this.#listeners[kind]
    const listeners = map?.get(path)
    if (!listeners?.delete(listener)) return false
    if (listeners.size > 0) return false
    map?.delete(path)
    return true
  }

  /** Counts a request in flight that will set a watch; `removePending` when it is answered or lost. */
  addPending(kind: WatchKind, path: string): void {
    const key = `${kind}:${path}`
    this.#pending ??= new Map()
    this.#pending.set(key, (this.#pending.get(key) ?? 0) + 1)
  }

  removePending(kind: WatchKind, path: string): void {
    const key = `${kind}:${path}`
    const left = (this.#pending?.get(key) ?? 1) - 1
    if (left === 0) this.#pending?.delete(key)
    else this.#pending?.set(key, left)
  }

  /** Returns whether a listener of this kind is registered on the path, or its request is in flight. */
  isWanted(kind: WatchKind, path: string): boolean {
    return this.#listeners[kind]?.has(path) === true || this.#pending?.has(`${kind}:${path}`) === true
  }

  paths(kind: WatchKind): Iterable<string> {
    return this.#listeners[kind]?.keys() ?? []
  }

  /** Marks a persistent watch that stays on the server without listeners, because removing it would remove others. */
  markLeftover(path: string): void {
    this.#leftovers ??= new Set()
    this.#leftovers.add(path)
  }

  /** Clears the mark of a path, and returns whether it was set. */
  takeLeftover(path: string): boolean {
    return this.#leftovers?.delete(path) ?? false
  }

  /** Clears the marks: a new connection has no such watches. */
  clearLeftovers(): void {
    this.#leftovers = undefined
  }

  get size(): number {
    return watchKinds.reduce((sum, kind) => sum + (this.#listeners[kind]?.size ?? 0), 0)
  }

  /** Returns the listeners created by the matching clients. */
  ownedBy(matches: (owner: object) => boolean): WatchListener[] {
    return watchKinds.flatMap((kind) =>
      [...(this.#listeners[kind]?.values() ?? [])].flatMap((listeners) =>
        [...listeners].filter((listener) => matches(listener.owner)),
      ),
    )
  }

  /** Notifies the listeners that an event concerns, and removes the one-shot ones. Returns the number of listeners. */
  dispatch(event: ServerEvent): number {
    const { type, path } = event
    const notified = new Set<WatchListener>()
    const takeOneShot = (kind: 'data' | 'exists' | 'children'): void => {
      const map = this.#listeners[kind]
      for (const listener of map?.get(path) ?? []) notified.add(listener)
      map?.delete(path)
    }
    if (type !== 'nodeChildrenChanged') {
      takeOneShot('data')
      takeOneShot('exists')
    }
    if (type === 'nodeChildrenChanged' || type === 'nodeDeleted') takeOneShot('children')
    for (const listener of this.#listeners.persistent?.get(path) ?? []) notified.add(listener)
    if (type !== 'nodeChildrenChanged') this.#addRecursiveListeners(path, notified)
    for (const listener of notified) listener.notify(event)
    return notified.size
  }

  /** Adds the recursive listeners of a path and of its ancestors. */
  #addRecursiveListeners(path: string, notified: Set<WatchListener>): void {
    const { recursive } = this.#listeners
    if (recursive === undefined || recursive.size === 0 || !path.startsWith('/')) return
    const longest = this.#longestRecursive
    const start = path.length > longest ? parentOf(path.slice(0, longest + 1)) : path
    for (let at = start; ; at = parentOf(at)) {
      for (const listener of recursive.get(at) ?? []) notified.add(listener)
      if (at === '/') return
    }
  }

  /** Notifies the persistent listeners that events may be missing. */
  resync(reason: 'reconnected' | 'newSession', order: number): void {
    for (const kind of ['persistent', 'recursive'] as const) {
      for (const listeners of this.#listeners[kind]?.values() ?? [])
        for (const listener of listeners) listener.resync(reason, order)
    }
  }

  /** Ends all listeners of these kinds. */
  end(kinds: readonly WatchKind[], error: Error | undefined): void {
    for (const kind of kinds) {
      const ended = [...(this.#listeners[kind]?.values() ?? [])]
      this.#listeners[kind]?.clear()
      for (const listeners of ended) for (const listener of listeners) listener.end(error)
    }
  }
}
