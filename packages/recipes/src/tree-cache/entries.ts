import type { Stat } from '@zabra/client/core'
import { childPath, nameOf, parentOf } from '@zabra/client/recipe-kit'

/** A cached znode. */
export interface Entry<T> {
  readonly value: T
  readonly stat: Stat
}

/** A change of a znode. `updated` includes a delete and create in between. */
export type NodeChange<T> =
  | { readonly type: 'added'; readonly path: string; readonly value: T; readonly stat: Stat }
  | {
      readonly type: 'updated'
      readonly path: string
      readonly value: T
      readonly stat: Stat
      readonly old: T
    }
  | { readonly type: 'removed'; readonly path: string; readonly old: T }

interface CachedEntry<T> extends Entry<T> {
  /** When it was read, in the order of the client's events and replies. */
  readonly order: number
}

/**
 * The znodes of a tree and the changes that each read or event makes: parents are added before their children, and
 * removed after them.
 */
export class EntryTable<T> {
  readonly #root: string
  readonly #entries = new Map<string, CachedEntry<T>>()
  readonly #children = new Map<string, Set<string>>()
  /** Znodes without an entry that exist: their data could not be decoded or read. */
  readonly #unreadable = new Set<string>()
  /** Znodes that were read before their parents, by parent and path. */
  readonly #held = new Map<string, Map<string, CachedEntry<T>>>()

  constructor(root: string) {
    this.#root = root
  }

  get size(): number {
    return this.#entries.size
  }

  get(path: string): Entry<T> | undefined {
    return this.#entries.get(path)
  }

  /** Returns the child names of a path, sorted; undefined when the path does not exist. */
  children(path: string): readonly string[] | undefined {
    return this.#entries.has(path) ? [...(this.#children.get(path) ?? [])].sort() : undefined
  }

  /** Yields all znodes, parents before children. */
  *all(): Generator<[string, Entry<T>]> {
    for (const path of [...this.#entries.keys()].sort()) yield [path, this.#entries.get(path)!]
  }

  /**
   * Applies a read, and returns the changes, parents first. A znode whose parent is not known yet is held back until it
   * is. Versions are not compared, because a znode that was created again restarts them.
   */
  read(path: string, { value, stat }: Entry<T>, order: number): NodeChange<T>[] {
    const old = this.#entries.get(path)
    if (old !== undefined && old.order > order) return []
    const entry = { value, stat, order }
    if (old === undefined) {
      if (!this.#isParentKnown(path)) return this.#hold(path, entry)
      this.#add(path, entry)
      return [{ type: 'added', path, value, stat }, ...this.#releaseBelow(path)]
    }
    const isUnchanged = old.stat.czxid === stat.czxid && old.stat.mzxid === stat.mzxid
    // An unchanged value keeps its identity, by which consumers compare.
    this.#entries.set(path, isUnchanged ? { ...entry, value: old.value } : entry)
    if (isUnchanged) return []
    return [{ type: 'updated', path, value, stat, old: old.value }]
  }

  /** Notes that a znode exists and has no readable value. Returns the changes: its children are no longer held back. */
  unreadable(path: string): NodeChange<T>[] {
    if (this.#entries.has(path)) return []
    this.#unreadable.add(path)
    return this.#releaseBelow(path)
  }

  /** Removes a znode and its subtree. Returns the changes, children first. */
  removed(path: string): NodeChange<T>[] {
    const gone: NodeChange<T>[] = []
    this.#remove(path, gone)
    return gone
  }

  /** Appends the changes to one list: passing those of a large subtree as arguments would exceed the limit of a call. */
  #remove(path: string, gone: NodeChange<T>[]): void {
    for (const name of this.#children.get(path) ?? []) this.#remove(childPath(path, name), gone)
    this.#forgetHeld(path)
    this.#unreadable.delete(path)
    this.#children.delete(path)
    const old = this.#entries.get(path)
    if (old === undefined) return
    this.#entries.delete(path)
    this.#children.get(parentOf(path))?.delete(nameOf(path))
    gone.push({ type: 'removed', path, old: old.value })
  }

  /** After a full read that began at `since`: removes znodes that it did not see, unless they were read later. */
  removeUnseen(seen: ReadonlySet<string>, since: number): NodeChange<T>[] {
    const isStale = ([path, { order }]: [string, CachedEntry<T>]): boolean => !seen.has(path) && order < since
    for (const held of this.#held.values()) {
      for (const [path] of [...held].filter(isStale)) this.#forgetHeld(path)
    }
    return [...this.#entries].filter(isStale).flatMap(([path]) => this.removed(path))
  }

  #isParentKnown(path: string): boolean {
    const parent = parentOf(path)
    return path === this.#root || this.#entries.has(parent) || this.#unreadable.has(parent)
  }

  #add(path: string, entry: CachedEntry<T>): void {
    this.#entries.set(path, entry)
    this.#unreadable.delete(path)
    const names = this.#children.get(parentOf(path))
    if (names === undefined) this.#children.set(parentOf(path), new Set([nameOf(path)]))
    else names.add(nameOf(path))
  }

  /** Keeps the newest read of a znode until its parent is known. */
  #hold(path: string, entry: CachedEntry<T>): NodeChange<T>[] {
    const parent = parentOf(path)
    const held = this.#held.get(parent)
    if (held === undefined) this.#held.set(parent, new Map([[path, entry]]))
    else if ((held.get(path)?.order ?? -1) <= entry.order) held.set(path, entry)
    return []
  }

  #releaseBelow(parent: string): NodeChange<T>[] {
    const held = this.#held.get(parent)
    if (held === undefined) return []
    this.#held.delete(parent)
    return [...held].flatMap(([path, entry]) => this.read(path, entry, entry.order))
  }

  /** Drops a held znode and those held below it. */
  #forgetHeld(path: string): void {
    const siblings = this.#held.get(parentOf(path))
    if (siblings?.delete(path) && siblings.size === 0) this.#held.delete(parentOf(path))
    const held = this.#held.get(path)
    this.#held.delete(path)
    for (const child of held?.keys() ?? []) this.#forgetHeld(child)
  }
}

/** Returns how many levels a path is below a root, or undefined outside of it. */
export function depthBelow(root: string, path: string): number | undefined {
  if (path === root) return 0
  const prefix = root === '/' ? '/' : `${root}/`
  return path.startsWith(prefix) ? path.slice(prefix.length).split('/').length : undefined
}
