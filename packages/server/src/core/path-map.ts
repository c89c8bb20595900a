import { NONE, PathIndex } from './tree/path-index.ts'

/** A map that becomes empty keeps arrays of up to this many entries. */
const KEPT_ENTRIES = 1 << 16

/**
 * A map from paths, for many entries that are added and removed.
 *
 * Optimised: values in an array, addressed through a `PathIndex` as the nodes of the tree.
 * Why: a `Map` with many insertions and deletions reallocates its table all the time, and each old table refers to the next one
 * and to its entries: once an old table is in the old generation, minor collections keep everything after it alive. Half of
 * the young objects of a server under writes survived for that reason alone. A large table is also copied as a whole.
 * Tested against a map, in `path-map.test.ts`.
 */
export class PathMap<V> {
  #index = new PathIndex(0)
  #values: (V | undefined)[] = []
  #free: number[] = []

  get size(): number {
    return this.#values.length - this.#free.length
  }

  /** `hash` is that of a `PathIndex`; it must be the same for a path in every call of this class. */
  get(path: string, hash: number): V | undefined {
    const at = this.#index.find(path, hash)
    return at === NONE ? undefined : this.#values[at]
  }

  set(path: string, hash: number, value: V): void {
    const at = this.#index.find(path, hash)
    if (at !== NONE) {
      this.#values[at] = value
      return
    }
    const free = this.#free.pop() ?? this.#values.length
    this.#values[free] = value
    this.#index.add(path, free, hash)
  }

  /** Returns whether there was an entry. */
  delete(path: string, hash: number): boolean {
    const at = this.#index.find(path, hash)
    if (at === NONE) return false
    this.#index.remove(at, hash)
    this.#values[at] = undefined
    this.#free.push(at)
    if (this.size === 0 && this.#values.length > KEPT_ENTRIES) {
      this.#index = new PathIndex(0)
      this.#values = []
      this.#free = []
    }
    return true
  }
}
