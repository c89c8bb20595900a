import { WatcherType } from '@zabra/protocol'
import { beginsWith } from '../begins-with.ts'
import { PathPrefixes } from '../path-prefixes.ts'
import { CROWD, WatchBits, WatchTable, type Watcher } from './watch-table.ts'

/** Called once per event and watcher. */
export type Notify<W> = (watcher: W) => void

/** The tables whose watchers an event concerns. */
export interface FiredTables {
  readonly data: boolean
  readonly child: boolean
}

/** Watchers that are notified in one step. */
const NOTIFIED_PER_STEP = 300

/**
 * Holds all watches of a server (`WatchManager`), in two tables: one for changes of a node itself, one for changes of its list of
 * children. A persistent watch is in both tables, a recursive one in the first.
 */
export class WatchManager<W extends Watcher> {
  readonly data: WatchTable<W>
  readonly child: WatchTable<W>
  /** Watched ancestors of changed paths that were looked at, ever. */
  ancestorsVisited = 0
  /** The recursive watches by path, without a lookup of each ancestor of a changed path in the table. Most paths have one watcher. */
  readonly #recursive: PathPrefixes<W | Set<W>>
  /** Paths with more than `CROWD` recursive watchers. */
  #recursiveCrowds = 0

  /** `hashKey` is the secret key of `TextMap` and `PathPrefixes`. */
  constructor(hashKey?: number) {
    this.data = new WatchTable(hashKey)
    this.child = new WatchTable(hashKey)
    this.#recursive = new PathPrefixes(hashKey)
  }

  /** Pairs of watcher and path, in both tables. */
  get size(): number {
    return this.data.size + this.child.size
  }

  watchData(watcher: W, path: string): void {
    watcher.watchedPaths.add(path)
    this.data.add(path, watcher, WatchBits.ONE_SHOT)
  }

  /** Watches for the creation of a node that does not exist. */
  watchMissing(watcher: W, path: string): void {
    watcher.watchedPaths.add(path)
    this.data.add(path, watcher, WatchBits.ONE_SHOT | WatchBits.MISSING)
  }

  watchChildren(watcher: W, path: string): void {
    watcher.watchedPaths.add(path)
    this.child.add(path, watcher, WatchBits.ONE_SHOT)
  }

  watchPersistently(watcher: W, path: string): void {
    watcher.watchedPaths.add(path)
    this.data.add(path, watcher, WatchBits.PERSISTENT)
    this.child.add(path, watcher, WatchBits.PERSISTENT)
  }

  watchRecursively(watcher: W, path: string): void {
    watcher.watchedPaths.add(path)
    this.data.add(path, watcher, WatchBits.RECURSIVE)
    const held = this.#recursive.get(path)
    if (held === undefined) this.#recursive.set(path, watcher)
    else if (held instanceof Set) {
      const { size } = held
      if (held.add(watcher).size > size && size === CROWD) this.#recursiveCrowds++
    } else if (held !== watcher) this.#recursive.set(path, new Set([held, watcher]))
  }

  /** Notifies of a created node. */
  fireCreated(path: string, notify: Notify<W>): void {
    this.#fireData(path, notify)
  }

  fireDataChanged(path: string, notify: Notify<W>): void {
    this.#fireData(path, notify)
  }

  /** Notifies of a deleted node. Watchers in both tables are notified once. */
  fireDeleted(path: string, notify: Notify<W>): void {
    if (this.size === 0) return
    const notified = new Set<W>()
    this.#fireData(path, (watcher) => {
      notified.add(watcher)
      notify(watcher)
    })
    this.#fireChild(path, (watcher) => {
      if (!notified.has(watcher)) notify(watcher)
    })
  }

  fireChildrenChanged(path: string, notify: Notify<W>): void {
    this.#fireChild(path, notify)
  }

  /** Whether any path has very many watchers. */
  get hasCrowds(): boolean {
    return this.data.crowds + this.child.crowds + this.#recursiveCrowds > 0
  }

  /** Whether an event of a path may have very many watchers, which are notified with `fireInSteps`. */
  hasCrowd(path: string): boolean {
    return this.#recursiveCrowds > 0 || this.data.isCrowd(path) || this.child.isCrowd(path)
  }

  /** As `fireDeleted`, or the others for one table, in steps. */
  *fireInSteps(path: string, tables: FiredTables, notify: Notify<W>): Generator<void> {
    const notified = new Set<W>()
    let visited = 0
    const notifyOnce = (watcher: W): void => {
      if (notified.has(watcher)) return
      notified.add(watcher)
      notify(watcher)
    }
    for (const table of [...(tables.data ? [this.data] : []), ...(tables.child ? [this.child] : [])]) {
      for (const [watcher, modes] of table.watchersOf(path)) {
        if ((modes & WatchBits.ONE_SHOT) !== 0) this.#consume(table, path, watcher)
        notifyOnce(watcher)
        if (++visited % NOTIFIED_PER_STEP === 0) yield
      }
      if (table !== this.data) continue
      for (const watchers of this.#watchersOfAncestors(path))
        for (const watcher of watchers) {
          notifyOnce(watcher)
          if (++visited % NOTIFIED_PER_STEP === 0) yield
        }
    }
  }

  #watchersOfAncestors(path: string): Iterable<W>[] {
    const found: Iterable<W>[] = []
    this.#recursive.forEachCandidate(path, (candidate, watchers) => {
      this.ancestorsVisited++
      if (beginsWith(path, candidate)) found.push(watchers instanceof Set ? watchers : [watchers])
    })
    return found
  }

  /** Returns whether a watcher has a watch of a type on exactly this path (`checkWatches`). */
  has(watcher: W, path: string, type: number): boolean {
    const data = this.data.modes(path, watcher)
    const child = this.child.modes(path, watcher)
    switch (type) {
      case WatcherType.Children:
        return (child & WatchBits.ONE_SHOT) !== 0
      case WatcherType.Data:
        return (data & WatchBits.ONE_SHOT) !== 0
      case WatcherType.Any:
        return (data | child) !== 0
      case WatcherType.Persistent:
        return (data & WatchBits.PERSISTENT) !== 0
      case WatcherType.PersistentRecursive:
        return (data & WatchBits.RECURSIVE) !== 0
      default:
        return false
    }
  }

  /** Removes a watch of a type on exactly this path. Returns false when there is none. */
  remove(watcher: W, path: string, type: number): boolean {
    let removed = 0
    switch (type) {
      case WatcherType.Children:
        removed = this.child.remove(path, watcher, WatchBits.ONE_SHOT)
        break
      case WatcherType.Data:
        removed = this.#removeData(path, watcher, WatchBits.ONE_SHOT)
        break
      case WatcherType.Any:
        removed = this.#removeData(path, watcher, ~0) | this.child.remove(path, watcher, ~0)
        break
      case WatcherType.Persistent:
        removed =
          this.#removeData(path, watcher, WatchBits.PERSISTENT) |
          this.child.remove(path, watcher, WatchBits.PERSISTENT)
        break
      case WatcherType.PersistentRecursive:
        removed = this.#removeData(path, watcher, WatchBits.RECURSIVE)
    }
    this.#forget(path, watcher)
    return removed !== 0
  }

  /** Removes all watches of a watcher, whose connection has closed. */
  removeAll(watcher: W): void {
    this.removeSome(watcher, Infinity)
  }

  /**
   * Removes the watches of a watcher on up to `limit` paths, where a path of more than 256 characters counts as several. Returns true
   * when none is left.
   */
  removeSome(watcher: W, limit: number): boolean {
    let left = limit
    for (const path of watcher.watchedPaths) {
      if (left <= 0) return false
      left -= Math.ceil(path.length / 256)
      this.#removeData(path, watcher, ~0)
      this.child.remove(path, watcher, ~0)
      watcher.watchedPaths.delete(path)
    }
    return true
  }

  #fireData(path: string, notify: Notify<W>): void {
    if (this.data.size === 0) return
    const notified = this.#recursive.size > 0 ? new Set<W>() : undefined
    this.data.forEach(path, (watcher, modes) => {
      notified?.add(watcher)
      if ((modes & WatchBits.ONE_SHOT) !== 0) this.#consume(this.data, path, watcher)
      notify(watcher)
    })
    if (notified !== undefined) this.#fireAncestors(path, notified, notify)
  }

  #fireAncestors(path: string, notified: Set<W>, notify: Notify<W>): void {
    // Most watched ancestors have the same watcher.
    let last: W | undefined
    this.#recursive.forEachCandidate(path, (candidate, watchers) => {
      this.ancestorsVisited++
      if (watchers === last) return
      let isAncestor = false
      for (const watcher of watchers instanceof Set ? watchers : [watchers]) {
        last = watcher
        // Compared only if a watcher is left to notify: the watches of one connection may be on every ancestor.
        if (notified.has(watcher)) continue
        isAncestor ||= beginsWith(path, candidate)
        if (!isAncestor) return
        notified.add(watcher)
        notify(watcher)
      }
    })
  }

  #fireChild(path: string, notify: Notify<W>): void {
    if (this.child.size === 0) return
    this.child.forEach(path, (watcher, modes) => {
      if ((modes & WatchBits.ONE_SHOT) !== 0) this.#consume(this.child, path, watcher)
      notify(watcher)
    })
  }

  #consume(table: WatchTable<W>, path: string, watcher: W): void {
    table.remove(path, watcher, WatchBits.ONE_SHOT)
    this.#forget(path, watcher)
  }

  #removeData(path: string, watcher: W, modes: number): number {
    const removed = this.data.remove(path, watcher, modes)
    if ((removed & WatchBits.RECURSIVE) !== 0) this.#removeRecursive(path, watcher)
    return removed
  }

  #removeRecursive(path: string, watcher: W): void {
    const held = this.#recursive.get(path)
    if (held instanceof Set && held.delete(watcher) && held.size === CROWD) this.#recursiveCrowds--
    if (held === watcher || (held instanceof Set && held.size === 0)) this.#recursive.delete(path)
  }

  #forget(path: string, watcher: W): void {
    if (this.data.modes(path, watcher) === 0 && this.child.modes(path, watcher) === 0)
      watcher.watchedPaths.delete(path)
  }
}
