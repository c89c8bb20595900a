import type { Stat } from '@zabra/client/core'

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

/** The znodes of a tree and the changes that each read or event makes. */
export class EntryTable<T> {
  readonly #entries = new Map<string, CachedEntry<T>>()
  readonly #children = new Map<string, Set<string>>()

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

  /** Applies a read. Versions are not compared, because a znode that was created again restarts them. */
  read(path: string, { value, stat }: Entry<T>, order: number): NodeChange<T> | undefined {
    const old = this.#entries.get(path)
    if (old !== undefined && old.order > order) return undefined
    this.#entries.set(path, { value, stat, order })
    if (old === undefined) {
      this.#link(path)
      return { type: 'added', path, value, stat }
    }
    if (old.stat.czxid === stat.czxid && old.stat.mzxid === stat.mzxid) return undefined
    return { type: 'updated', path, value, stat, old: old.value }
  }

  /** Removes a znode and its subtree. Returns the changes, children first. */
  removed(path: string): NodeChange<T>[] {
    const gone: NodeChange<T>[] = []
    for (const name of this.children(path) ?? []) gone.push(...this.removed(below(path, name)))
    const old = this.#entries.get(path)
    if (old === undefined) return gone
    this.#entries.delete(path)
    this.#children.delete(path)
    this.#children.get(parentOf(path))?.delete(nameOf(path))
    gone.push({ type: 'removed', path, old: old.value })
    return gone
  }

  /** After a full read that began at `since`: removes znodes that it did not see, unless they were read later. */
  removeUnseen(seen: ReadonlySet<string>, since: number): NodeChange<T>[] {
    const stale = [...this.#entries].filter(([path, { order }]) => !seen.has(path) && order < since)
    return stale.flatMap(([path]) => this.removed(path))
  }

  #link(path: string): void {
    const names = this.#children.get(parentOf(path))
    if (names === undefined) this.#children.set(parentOf(path), new Set([nameOf(path)]))
    else names.add(nameOf(path))
  }
}

/** Returns the path of a child. */
export const below = (path: string, name: string): string => (path === '/' ? `/${name}` : `${path}/${name}`)
const parentOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf('/')))
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** Returns how many levels a path is below a root, or undefined outside of it. */
export function depthBelow(root: string, path: string): number | undefined {
  if (path === root) return 0
  const prefix = root === '/' ? '/' : `${root}/`
  return path.startsWith(prefix) ? path.slice(prefix.length).split('/').length : undefined
}
