import { NONE, PathIndex } from './path-index.ts'

/** A map that becomes empty keeps arrays of up to this many entries. */
const KEPT_ENTRIES = 1 << 16

/**
 * A map from paths, for many entries that are added and removed. No value is undefined.
 *
 * Optimised: values in an array, addressed through a `PathIndex` as the nodes of the tree.
 * Why: a `Map` with many insertions and deletions reallocates its table all the time, and each old table refers to the next one
 * and to its entries: once an old table is in the old generation, minor collections keep everything after it alive. Half of
 * the young objects of a server under writes survived for that reason alone. A large table is also copied as a whole, which takes
 * 10 ms at 131,072 entries and 120 ms at a million.
 * Tested against a map, in `path-map.test.ts`.
 */
export class PathMap<V> {
  readonly #key: number
  #index: PathIndex
  #values: (V | undefined)[] = []
  /** Places without a value. Those beyond the end of the values are void. */
  #free: number[] = []
  size = 0

  /** `key` is that of a `PathIndex`. */
  constructor(key = 0) {
    this.#key = key
    this.#index = new PathIndex(key)
  }

  /** Returns a hash that the other methods accept. They accept that of another `PathIndex` too, if it is the same one in every call. */
  hash(path: string): number {
    return this.#index.hash(path)
  }

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
    const place = this.#place()
    this.#values[place] = value
    this.#index.add(path, place, hash)
    this.size++
  }

  /** Returns whether there was an entry. */
  delete(path: string, hash: number): boolean {
    const at = this.#index.find(path, hash)
    if (at === NONE) return false
    this.#index.remove(at, hash)
    this.#values[at] = undefined
    this.#free.push(at)
    // Entries are removed from the end by those that remove all, a few at a time.
    while (this.#values.length > 0 && this.#values.at(-1) === undefined) this.#values.pop()
    if (--this.size === 0 && this.#free.length > KEPT_ENTRIES) {
      this.#index = new PathIndex(this.#key)
      this.#values = []
      this.#free = []
    }
    return true
  }

  /** Yields the entries, the last place first: all that are held until they are yielded. Entries may be added or deleted meanwhile. */
  *[Symbol.iterator](): Generator<[path: string, value: V], void> {
    for (let at = this.#values.length - 1; at >= 0; at = Math.min(at, this.#values.length) - 1) {
      const value = this.#values[at]
      if (value !== undefined) yield [this.#index.pathAt(at)!, value]
    }
  }

  /** Returns the place of the next entry. */
  #place(): number {
    for (let free = this.#free.pop(); free !== undefined; free = this.#free.pop())
      if (free < this.#values.length) return free
    return this.#values.length
  }
}
