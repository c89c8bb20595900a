import { ErrorCode } from '@zabra/protocol'
import { RequestError } from '../session/request-error.ts'
import type { WatchedEvent, ZooKeeper } from '../session/zookeeper.ts'

/** What a watch of the shell waits for. */
export type WatchKind = 'data' | 'exists' | 'children' | 'persistent' | 'persistentRecursive'

interface ActiveWatch {
  readonly path: string
  readonly kind: WatchKind
  close(): Promise<void>
}

/** The name that ZooKeeper has for the removal of a watch. */
const removalEvents: Readonly<Record<WatchKind, string>> = {
  data: 'DataWatchRemoved',
  exists: 'DataWatchRemoved',
  children: 'ChildWatchRemoved',
  persistent: 'PersistentWatchRemoved',
  persistentRecursive: 'PersistentWatchRemoved',
}

const RECENT_EVENTS = 1000

/** The watches that commands of the shell have left behind. */
export class ShellWatches {
  readonly #active = new Set<ActiveWatch>()
  /** Places of the last changes that were told, so that one of which several watches hear is told once. */
  readonly #recentOrders = new Set<number>()
  readonly #notify: (type: string, path: string) => void

  /** `tell` hears of changes and removals under the names of ZooKeeper. */
  constructor(tell: (type: string, path: string) => void) {
    this.#notify = tell
  }

  /** Waits for one change. A second watch of the same kind at the same path would tell nothing that the first does not. */
  async addOneShot(zk: ZooKeeper, path: string, kind: 'data' | 'exists' | 'children'): Promise<void> {
    if (this.#has(path, kind)) return
    const watch = await zk.watchOnce(path, kind)
    const held: ActiveWatch = { path, kind, close: () => watch.close() }
    this.#active.add(held)
    void watch.fired.then((event) => {
      this.#active.delete(held)
      if (event !== undefined) this.#notifyOnce(event)
    })
  }

  /** Waits for every change. */
  async addPersistent(
    zk: ZooKeeper,
    path: string,
    kind: 'persistent' | 'persistentRecursive',
  ): Promise<void> {
    if (this.#has(path, kind)) return
    const watcher = await zk.watch(path, kind)
    const held: ActiveWatch = { path, kind, close: () => watcher.close() }
    this.#active.add(held)
    void this.#forward(watcher)
  }

  /** Gives up watches of these kinds at a path. Throws what a server says when there is none. */
  async remove(path: string, kinds: readonly WatchKind[]): Promise<void> {
    const found = [...this.#active].filter((held) => held.path === path && kinds.includes(held.kind))
    if (found.length === 0) throw new RequestError(ErrorCode.NOWATCHER, path)
    for (const held of found) {
      this.#active.delete(held)
      await held.close()
      this.#notify(removalEvents[held.kind], path)
    }
  }

  /** The session is over, and its watches with it. */
  clear(): void {
    this.#active.clear()
  }

  #has(path: string, kind: WatchKind): boolean {
    for (const held of this.#active) if (held.path === path && held.kind === kind) return true
    return false
  }

  async #forward(events: AsyncIterable<WatchedEvent>): Promise<void> {
    for await (const event of events) this.#notifyOnce(event)
  }

  #notifyOnce(event: WatchedEvent): void {
    if (event.type === 'resync' || this.#recentOrders.has(event.order)) return
    const { type, path, order } = event
    this.#recentOrders.add(order)
    // Watches that hear of one change hear of it within a moment.
    for (const oldest of this.#recentOrders)
      if (this.#recentOrders.size > RECENT_EVENTS) this.#recentOrders.delete(oldest)
    this.#notify(`${type[0]!.toUpperCase()}${type.slice(1)}`, path)
  }
}
