import { EventType } from '@zabra/protocol'
import type { TreeModel, WatchEvent } from '../history/model.ts'
import { formatZxid, type WatchKind } from '../history/records.ts'

interface PersistentWatch {
  readonly path: string
  readonly isRecursive: boolean
  /** The zxid from which it reports. */
  since: number
}

/**
 * The persistent watches of one session. Each reports every event of a node, or of a node and its subtree, once and in
 * the order of the history. Events while the session is detached are not reported.
 */
export class PersistentWatches {
  readonly #model: TreeModel
  readonly #mayRead: (acl: readonly string[]) => boolean
  /** The watches, by kind and path. */
  readonly #watches = new Map<string, PersistentWatch>()
  /** Index of the first event that may still have to be reported. */
  #next = 0

  constructor(model: TreeModel, mayRead: (acl: readonly string[]) => boolean) {
    this.#model = model
    this.#mayRead = mayRead
  }

  get size(): number {
    return this.#watches.size
  }

  clear(): void {
    this.#watches.clear()
  }

  add(path: string, recursive: boolean, zxid: number): void {
    const key = `${recursive ? 'recursive' : 'persistent'} ${path}`
    if (!this.#watches.has(key)) this.#watches.set(key, { path, isRecursive: recursive, since: zxid })
  }

  /** Returns the keys of the watches at a path that match a kind. */
  matching(path: string, watches: WatchKind): string[] {
    const kinds = watches === 'any' ? (['recursive', 'persistent'] as const) : [watches]
    return kinds.map((kind) => `${kind} ${path}`).filter((key) => this.#watches.has(key))
  }

  remove(keys: readonly string[]): void {
    for (const key of keys) this.#watches.delete(key)
  }

  /** Registers the watches again as of a zxid. */
  reset(zxid: number): void {
    for (const watch of this.#watches.values()) watch.since = Math.max(watch.since, zxid)
  }

  /** Returns the first event up to a zxid that should have been reported. */
  missed(zxid: number): WatchEvent | undefined {
    const event = this.#find(zxid)
    while (this.#model.events[this.#next] !== undefined && this.#model.events[this.#next]!.zxid <= zxid)
      this.#next++
    return event
  }

  /**
   * Checks a notification. Returns true for the next event of these watches, false for an event of none, or the
   * violation.
   */
  notified(type: number, path: string): boolean | string {
    if (this.#watches.size === 0) return false
    const event = this.#find(Infinity)
    if (event?.type === type && event.path === path) {
      this.#next = this.#model.events.indexOf(event, this.#next) + 1
      return true
    }
    if (!this.#concerns({ type, path, zxid: Infinity })) return false
    const due =
      event === undefined
        ? 'nothing was'
        : `event ${event.type} of ${event.path} at ${formatZxid(event.zxid)} was`
    return `was notified of event ${type} of ${path} by a persistent watch when ${due} next`
  }

  #find(zxid: number): WatchEvent | undefined {
    if (this.#watches.size === 0) return undefined
    const { events } = this.#model
    for (let at = this.#next; at < events.length && events[at]!.zxid <= zxid; at++)
      if (this.#mayRead(events[at]!.acl) && this.#concerns(events[at]!)) return events[at]
    return undefined
  }

  #concerns({ type, path, zxid }: Omit<WatchEvent, 'acl'>): boolean {
    for (const watch of this.#watches.values()) {
      if (watch.since >= zxid) continue
      if (watch.isRecursive ? isWithin(path, watch.path, type) : path === watch.path) return true
    }
    return false
  }
}

const isWithin = (path: string, watched: string, type: number): boolean =>
  type !== EventType.NodeChildrenChanged && (path === watched || path.startsWith(`${watched}/`))
