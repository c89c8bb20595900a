import { EventType } from '@zabra/protocol'
import type { EventName, OneShotWatch, WatchedEvent, Watcher } from './zookeeper.ts'

const names: ReadonlyMap<number, EventName> = new Map([
  [EventType.NodeCreated, 'nodeCreated'],
  [EventType.NodeDeleted, 'nodeDeleted'],
  [EventType.NodeDataChanged, 'nodeDataChanged'],
  [EventType.NodeChildrenChanged, 'nodeChildrenChanged'],
])

/** The name of an event's number on the wire; undefined for events that speak of no node. */
export const eventName = (type: number): EventName | undefined => names.get(type)

/** What a watch waits for. */
export type WatchKind = 'data' | 'exists' | 'children' | 'persistent' | 'persistentRecursive'

interface Entry {
  readonly path: string
  readonly kind: WatchKind
  told(event: WatchedEvent): void
  over(): void
}

/** Who of this session waits for what. */
export class WatchBook {
  readonly #entries = new Set<Entry>()

  /** Hands an event to those who wait for it; a watch for one change is gone then. */
  tell(event: WatchedEvent): void {
    for (const entry of this.#entries) {
      if (!concerns(entry, event)) continue
      if (!entry.kind.startsWith('persistent')) this.#entries.delete(entry)
      entry.told(event)
    }
  }

  /** The session is over: nobody hears of anything any more. */
  end(): void {
    for (const entry of this.#entries) entry.over()
    this.#entries.clear()
  }

  /** Whether anybody still waits at a path. */
  has(path: string): boolean {
    for (const entry of this.#entries) if (entry.path === path) return true
    return false
  }

  /** A watch for one change. `left` runs when it is closed before it has fired. */
  once(path: string, kind: WatchKind, left: () => Promise<void>): OneShotWatch {
    let settle: (event: WatchedEvent | undefined) => void = () => {}
    const fired = new Promise<WatchedEvent | undefined>((resolve) => (settle = resolve))
    const entry: Entry = { path, kind, told: settle, over: () => settle(undefined) }
    this.#entries.add(entry)
    return {
      fired,
      close: async () => {
        if (!this.#entries.delete(entry)) return
        settle(undefined)
        await left()
      },
    }
  }

  /** A stream of changes. `left` runs when it is closed. */
  stream(path: string, kind: WatchKind, left: () => Promise<void>): Watcher {
    const queue: WatchedEvent[] = []
    let wake: () => void = () => {}
    let over = false
    const entry: Entry = {
      path,
      kind,
      told: (event) => {
        queue.push(event)
        wake()
      },
      over: () => {
        over = true
        wake()
      },
    }
    this.#entries.add(entry)
    const close = async (): Promise<void> => {
      if (!this.#entries.delete(entry)) return
      entry.over()
      await left()
    }
    async function* events(): AsyncGenerator<WatchedEvent> {
      try {
        for (;;) {
          yield* queue.splice(0)
          if (over) return
          if (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        await close()
      }
    }
    return { path, close, [Symbol.asyncIterator]: () => events() }
  }
}

function concerns({ path, kind }: Entry, event: WatchedEvent): boolean {
  if (kind === 'persistentRecursive') {
    const below = event.path === path || event.path.startsWith(path === '/' ? '/' : `${path}/`)
    return below && event.type !== 'nodeChildrenChanged'
  }
  if (event.path !== path) return false
  if (kind === 'persistent') return true
  if (kind === 'children') return event.type === 'nodeChildrenChanged' || event.type === 'nodeDeleted'
  return event.type !== 'nodeChildrenChanged'
}
