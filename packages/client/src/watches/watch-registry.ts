import { EventType, readWatcherEvent, type Reader } from '@zabra/protocol'
import type { NodeEventType } from '../types.ts'

export type WatchKind = 'data' | 'exists' | 'children' | 'persistent' | 'recursive'
export const watchKinds: readonly WatchKind[] = ['data', 'exists', 'children', 'persistent', 'recursive']

/** A change as it came, with the path on the server. */
export interface ServerEvent {
  readonly type: NodeEventType
  readonly path: string
  readonly zxid: bigint | undefined
  readonly order: number
}

/** Somebody who watches one path in one way. */
export interface WatchListener {
  /** The view that it was made by. */
  readonly owner: object
  /** Nobody waits for it any more. */
  close(): Promise<void>
  /** A change. A one-shot watch is out of the registry by then. */
  notify(event: ServerEvent): void
  /** Events may be missing. */
  resync(reason: 'reconnected' | 'newSession', order: number): void
  /** It hears nothing more. */
  end(error: Error | undefined): void
}

const types: Readonly<Record<number, NodeEventType>> = {
  [EventType.NodeCreated]: 'nodeCreated',
  [EventType.NodeDeleted]: 'nodeDeleted',
  [EventType.NodeDataChanged]: 'nodeDataChanged',
  [EventType.NodeChildrenChanged]: 'nodeChildrenChanged',
}

/**
 * The notification that `reader` stands in, with the halves of the zxid in its header. Undefined for what tells nothing
 * about a znode: such events tell of the state of a connection, which the client knows better.
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
  const told = zxidHigh >= 0 && (zxidHigh > 0 || zxidLow !== 0)
  const zxid = told ? (BigInt(zxidHigh) << 32n) | BigInt(zxidLow >>> 0) : undefined
  return { type: name, path, zxid, order: nextOrder() }
}

type Listeners = Map<string, Set<WatchListener>>
const NO_LISTENERS: Partial<Record<WatchKind, Listeners>> = Object.freeze({})

/**
 * Who watches what. Paths are those of the servers, so that views with different roots share one watch and do not
 * disturb each other.
 */
export class WatchRegistry {
  /** Made when they are needed: most clients have few kinds, and some programs have thousands of clients. */
  #listeners: Partial<Record<WatchKind, Listeners>> = NO_LISTENERS
  #leftovers: Set<string> | undefined
  /** Requests on their way that will leave a watch on the server, by kind and path. */
  #pending: Map<string, number> | undefined

  add(kind: WatchKind, path: string, listener: WatchListener): void {
    if (this.#listeners === NO_LISTENERS) this.#listeners = {}
    const map = (this.#listeners[kind] ??= new Map())
    const listeners = map.get(path)
    if (listeners === undefined) map.set(path, new Set([listener]))
    else listeners.add(listener)
  }

  /** True when it was there and was the last of its kind on the path. */
  remove(kind: WatchKind, path: string, listener: WatchListener): boolean {
    const map = this.#listeners[kind]
    const listeners = map?.get(path)
    if (!listeners?.delete(listener)) return false
    if (listeners.size > 0) return false
    map?.delete(path)
    return true
  }

  /** A request that leaves a watch is on its way; `arrived` when it is answered or lost. */
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

  /** Whether somebody watches the path in this way, or is about to. */
  isWanted(kind: WatchKind, path: string): boolean {
    return this.#listeners[kind]?.has(path) === true || this.#pending?.has(`${kind}:${path}`) === true
  }

  paths(kind: WatchKind): Iterable<string> {
    return this.#listeners[kind]?.keys() ?? []
  }

  /** A lasting watch stays on the server though nobody wants it: removing it would take others along. */
  markLeftover(path: string): void {
    this.#leftovers ??= new Set()
    this.#leftovers.add(path)
  }

  /** Whether a lasting watch was left on the path; it is not, from now on. */
  takeLeftover(path: string): boolean {
    return this.#leftovers?.delete(path) ?? false
  }

  /** A new connection has none of what was left on the old one. */
  clearLeftovers(): void {
    this.#leftovers = undefined
  }

  get size(): number {
    return watchKinds.reduce((sum, kind) => sum + (this.#listeners[kind]?.size ?? 0), 0)
  }

  /** Everybody who was made by some views. */
  ownedBy(covers: (owner: object) => boolean): WatchListener[] {
    return watchKinds.flatMap((kind) =>
      [...(this.#listeners[kind]?.values() ?? [])].flatMap((listeners) =>
        [...listeners].filter((listener) => covers(listener.owner)),
      ),
    )
  }

  /** Tells everybody whom the change concerns; one-shot watches are spent by it. Returns how many they were. */
  dispatch(event: ServerEvent): number {
    const { type, path } = event
    const concerned = new Set<WatchListener>()
    const spend = (kind: 'data' | 'exists' | 'children'): void => {
      const map = this.#listeners[kind]
      for (const listener of map?.get(path) ?? []) concerned.add(listener)
      map?.delete(path)
    }
    if (type !== 'nodeChildrenChanged') {
      spend('data')
      spend('exists')
    }
    if (type === 'nodeChildrenChanged' || type === 'nodeDeleted') spend('children')
    for (const listener of this.#listeners.persistent?.get(path) ?? []) concerned.add(listener)
    if (type !== 'nodeChildrenChanged') this.#addRecursiveListeners(path, concerned)
    for (const listener of concerned) listener.notify(event)
    return concerned.size
  }

  /** The recursive watches of a path and of all above it. */
  #addRecursiveListeners(path: string, concerned: Set<WatchListener>): void {
    const { recursive } = this.#listeners
    if (recursive === undefined || recursive.size === 0) return
    for (let at = path; at.startsWith('/'); at = at.slice(0, Math.max(1, at.lastIndexOf('/')))) {
      for (const listener of recursive.get(at) ?? []) concerned.add(listener)
      if (at === '/') return
    }
  }

  /** Tells the watches that live on that events may be missing. */
  resync(reason: 'reconnected' | 'newSession', order: number): void {
    for (const kind of ['persistent', 'recursive'] as const) {
      for (const listeners of this.#listeners[kind]?.values() ?? [])
        for (const listener of listeners) listener.resync(reason, order)
    }
  }

  /** Ends these kinds of watches. */
  end(kinds: readonly WatchKind[], error: Error | undefined): void {
    for (const kind of kinds) {
      const ended = [...(this.#listeners[kind]?.values() ?? [])]
      this.#listeners[kind]?.clear()
      for (const listeners of ended) for (const listener of listeners) listener.end(error)
    }
  }
}
