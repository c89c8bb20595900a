import { ErrorCode } from '@zabra/protocol'
import { RequestError } from '../session/request-error.ts'
import type { WatchedEvent, ZooKeeper } from '../session/zookeeper.ts'

/** What a watch of the shell waits for. */
export type Kind = 'data' | 'exists' | 'children' | 'persistent' | 'persistentRecursive'

interface Held {
  readonly path: string
  readonly kind: Kind
  close(): Promise<void>
}

/** The name that ZooKeeper has for the removal of a watch. */
const removed: Readonly<Record<Kind, string>> = {
  data: 'DataWatchRemoved',
  exists: 'DataWatchRemoved',
  children: 'ChildWatchRemoved',
  persistent: 'PersistentWatchRemoved',
  persistentRecursive: 'PersistentWatchRemoved',
}

const RECENT = 1000

/** The watches that commands of the shell have left behind. */
export class Watching {
  readonly #held = new Set<Held>()
  /** Places of the last changes that were told, so that one of which several watches hear is told once. */
  readonly #recent = new Set<number>()
  readonly #tell: (type: string, path: string) => void

  /** `tell` hears of changes and removals under the names of ZooKeeper. */
  constructor(tell: (type: string, path: string) => void) {
    this.#tell = tell
  }

  /** Waits for one change. A second watch of the same kind at the same path would tell nothing that the first does not. */
  async once(zk: ZooKeeper, path: string, kind: 'data' | 'exists' | 'children'): Promise<void> {
    if (this.#holds(path, kind)) return
    const watch = await zk.watchOnce(path, kind)
    const held: Held = { path, kind, close: () => watch.close() }
    this.#held.add(held)
    void watch.fired.then((event) => {
      this.#held.delete(held)
      if (event !== undefined) this.#told(event)
    })
  }

  /** Waits for every change. */
  async stream(zk: ZooKeeper, path: string, kind: 'persistent' | 'persistentRecursive'): Promise<void> {
    if (this.#holds(path, kind)) return
    const watcher = await zk.watch(path, kind)
    const held: Held = { path, kind, close: () => watcher.close() }
    this.#held.add(held)
    void this.#pump(watcher)
  }

  /** Gives up watches of these kinds at a path. Throws what a server says when there is none. */
  async remove(path: string, kinds: readonly Kind[]): Promise<void> {
    const found = [...this.#held].filter((held) => held.path === path && kinds.includes(held.kind))
    if (found.length === 0) throw new RequestError(ErrorCode.NOWATCHER, path)
    for (const held of found) {
      this.#held.delete(held)
      await held.close()
      this.#tell(removed[held.kind], path)
    }
  }

  /** The session is over, and its watches with it. */
  forget(): void {
    this.#held.clear()
  }

  #holds(path: string, kind: Kind): boolean {
    for (const held of this.#held) if (held.path === path && held.kind === kind) return true
    return false
  }

  async #pump(events: AsyncIterable<WatchedEvent>): Promise<void> {
    for await (const event of events) this.#told(event)
  }

  #told(event: WatchedEvent): void {
    if (event.type === 'resync' || this.#recent.has(event.order)) return
    const { type, path, order } = event
    this.#recent.add(order)
    // Watches that hear of one change hear of it within a moment.
    for (const oldest of this.#recent) if (this.#recent.size > RECENT) this.#recent.delete(oldest)
    this.#tell(`${type[0]!.toUpperCase()}${type.slice(1)}`, path)
  }
}
