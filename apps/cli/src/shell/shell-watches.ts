import { ErrorCode } from '@zabra/protocol'
import { RequestError } from '../session/request-error.ts'
import { untilClosed } from '../session/watch-events.ts'
import type { Client, WatchedEvent } from '@zabra/client'

/** The kinds of watch that the shell can set. */
export type WatchKind = 'data' | 'exists' | 'children' | 'persistent' | 'persistentRecursive'

interface ActiveWatch {
  readonly path: string
  readonly kind: WatchKind
  close(): Promise<void>
}

/** ZooKeeper's event types for the removal of a watch. */
const removalEvents: Readonly<Record<WatchKind, string>> = {
  data: 'DataWatchRemoved',
  exists: 'DataWatchRemoved',
  children: 'ChildWatchRemoved',
  persistent: 'PersistentWatchRemoved',
  persistentRecursive: 'PersistentWatchRemoved',
}

/** Number of recent events remembered to drop duplicates. */
const RECENT_EVENTS = 1000

/** The watches that commands of the shell have set. */
export class ShellWatches {
  readonly #active = new Set<ActiveWatch>()
  /** `order` of the most recent events: a change that fires several watches is printed once. */
  readonly #recentOrders = new Set<number>()
  readonly #notify: (type: string, path: string) => void

  /** `notify` receives changes and removals with ZooKeeper's event types. */
  constructor(notify: (type: string, path: string) => void) {
    this.#notify = notify
  }

  /** Sets a one-shot watch, unless one of this kind is set at the path already. */
  async addOneShot(zk: Client, path: string, kind: 'data' | 'exists' | 'children'): Promise<void> {
    if (this.#has(path, kind)) return
    const oneShot = await zk.watchOnce(path, kind)
    const watch: ActiveWatch = { path, kind, close: () => oneShot.close() }
    this.#active.add(watch)
    oneShot.fired.then(
      (event) => {
        this.#active.delete(watch)
        this.#notifyOnce(event)
      },
      // It was closed, or its session has ended.
      () => this.#active.delete(watch),
    )
  }

  /** Sets a persistent watch, unless one of this kind is set at the path already. */
  async addPersistent(zk: Client, path: string, kind: 'persistent' | 'persistentRecursive'): Promise<void> {
    if (this.#has(path, kind)) return
    const watcher = await zk.watch(path, { mode: kind })
    const watch: ActiveWatch = { path, kind, close: () => watcher.close() }
    this.#active.add(watch)
    void this.#forward(watch, watcher)
  }

  /** Removes the watches of these kinds at a path. Rejects with `NOWATCHER` when there is none, as a server does. */
  async remove(path: string, kinds: readonly WatchKind[]): Promise<void> {
    const found = [...this.#active].filter((watch) => watch.path === path && kinds.includes(watch.kind))
    if (found.length === 0) throw new RequestError(ErrorCode.NOWATCHER, path)
    for (const watch of found) {
      this.#active.delete(watch)
      await watch.close()
      this.#notify(removalEvents[watch.kind], path)
    }
  }

  /** Forgets all watches; they ended with their session. */
  clear(): void {
    this.#active.clear()
  }

  #has(path: string, kind: WatchKind): boolean {
    for (const watch of this.#active) if (watch.path === path && watch.kind === kind) return true
    return false
  }

  async #forward(watch: ActiveWatch, events: AsyncIterable<WatchedEvent>): Promise<void> {
    try {
      for await (const event of untilClosed(events)) this.#notifyOnce(event)
    } catch {
      // The server does not set it again on a new connection.
      this.#active.delete(watch)
      this.#notify(removalEvents[watch.kind], watch.path)
    }
  }

  #notifyOnce(event: WatchedEvent): void {
    if (event.type === 'resync' || this.#recentOrders.has(event.order)) return
    const { type, path, order } = event
    this.#recentOrders.add(order)
    // Events of one change arrive together, so a short memory is enough.
    for (const oldest of this.#recentOrders)
      if (this.#recentOrders.size > RECENT_EVENTS) this.#recentOrders.delete(oldest)
    this.#notify(`${type[0]!.toUpperCase()}${type.slice(1)}`, path)
  }
}
