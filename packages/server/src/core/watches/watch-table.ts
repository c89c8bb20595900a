import { TextMap } from '../text-map.ts'

/**
 * The modes that a watcher can have on a path, as bits, since several can be set. `MISSING` goes with `ONE_SHOT`, for a watch that waits
 * for a node to be created.
 */
export const WatchBits = { ONE_SHOT: 1, PERSISTENT: 2, RECURSIVE: 4, MISSING: 8 } as const

/** A set of paths. Paths may be deleted while it is iterated. */
export interface PathSet extends Iterable<string> {
  readonly size: number
  add(path: string): void
  delete(path: string): boolean
}

/** A connection that has watches, compared by object identity. */
export interface Watcher {
  /** The paths on which this watcher has an entry in a table. Maintained by `WatchManager`. */
  readonly watchedPaths: PathSet
}

interface Single<W> {
  readonly watcher: W
  modes: number
}

type Watchers<W> = Single<W> | Map<W, number>

/** More watchers of one path than these are notified in steps: so many take a millisecond. */
export const CROWD = 2000

/** Maps paths to watchers. Most paths have one watcher, which is stored without a map. */
export class WatchTable<W extends Watcher> {
  readonly #paths: TextMap<Watchers<W>>
  /** Pairs of watcher and path. */
  size = 0
  /** Paths with more than `CROWD` watchers. */
  crowds = 0
  /** Watches by their modes; those for missing nodes are one-shot ones too. */
  readonly counts = { oneShot: 0, persistent: 0, recursive: 0, missing: 0 }

  /** `hashKey` is the secret key of `TextMap`. */
  constructor(hashKey?: number) {
    this.#paths = new TextMap(hashKey)
  }

  get pathCount(): number {
    return this.#paths.size
  }

  modes(path: string, watcher: W): number {
    const held = this.#paths.get(path)
    return held === undefined ? 0 : modesOf(held, watcher)
  }

  add(path: string, watcher: W, mode: number): void {
    const held = this.#paths.get(path)
    if (held === undefined) {
      this.#paths.set(path, { watcher, modes: mode })
      this.size++
      this.#count(mode, 1)
    } else if (held instanceof Map) {
      const before = held.get(watcher)
      if (before === undefined) this.size++
      this.#count(mode & ~(before ?? 0), 1)
      held.set(watcher, (before ?? 0) | mode)
      if (before === undefined && held.size === CROWD + 1) this.crowds++
    } else if (held.watcher === watcher) {
      this.#count(mode & ~held.modes, 1)
      held.modes |= mode
    } else {
      this.#paths.set(
        path,
        new Map([
          [held.watcher, held.modes],
          [watcher, mode],
        ]),
      )
      this.size++
      this.#count(mode, 1)
    }
  }

  /** Removes modes, and returns those of them that were set. */
  remove(path: string, watcher: W, modes: number): number {
    if ((modes & WatchBits.ONE_SHOT) !== 0) modes |= WatchBits.MISSING
    const held = this.#paths.get(path)
    if (held === undefined) return 0
    const before = modesOf(held, watcher)
    const left = before & ~modes
    if (left === before) return 0
    this.#count(before & modes, -1)
    if (held instanceof Map) {
      if (left !== 0) held.set(watcher, left)
      else {
        held.delete(watcher)
        this.size--
        if (held.size === CROWD) this.crowds--
        if (held.size === 0) this.#paths.delete(path)
      }
    } else if (left === 0) {
      this.#paths.delete(path)
      this.size--
    } else {
      held.modes = left
    }
    return before & modes
  }

  #count(modes: number, change: number): void {
    if ((modes & WatchBits.ONE_SHOT) !== 0) this.counts.oneShot += change
    if ((modes & WatchBits.PERSISTENT) !== 0) this.counts.persistent += change
    if ((modes & WatchBits.RECURSIVE) !== 0) this.counts.recursive += change
    if ((modes & WatchBits.MISSING) !== 0) this.counts.missing += change
  }

  /** Calls `visit` for each watcher of a path. `visit` may change the entries of that watcher. */
  forEach(path: string, visit: (watcher: W, modes: number) => void): void {
    const held = this.#paths.get(path)
    if (held === undefined) return
    if (held instanceof Map) for (const [watcher, modes] of held) visit(watcher, modes)
    else visit(held.watcher, held.modes)
  }

  /** Whether a path has more than `CROWD` watchers. */
  isCrowd(path: string): boolean {
    if (this.crowds === 0) return false
    const held = this.#paths.get(path)
    return held instanceof Map && held.size > CROWD
  }

  /** Returns the watchers of a path with their modes. The entries of those that were yielded may change meanwhile. */
  watchersOf(path: string): Iterable<readonly [watcher: W, modes: number]> {
    const held = this.#paths.get(path)
    if (held === undefined) return []
    return held instanceof Map ? held : [[held.watcher, held.modes]]
  }

  /** The number of watchers of a path. */
  watcherCount(path: string): number {
    const held = this.#paths.get(path)
    if (held === undefined) return 0
    return held instanceof Map ? held.size : 1
  }

  /** Yields each path with its watchers: those that are held until they are yielded, and no more than there are now. */
  *entries(): Generator<[path: string, watchers: W[]]> {
    for (const [path, held] of this.#paths)
      yield [path, held instanceof Map ? [...held.keys()] : [held.watcher]]
  }
}

function modesOf<W>(held: Watchers<W>, watcher: W): number {
  if (held instanceof Map) return held.get(watcher) ?? 0
  return held.watcher === watcher ? held.modes : 0
}
