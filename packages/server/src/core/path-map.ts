import { NONE, PathIndex } from './tree/path-index.ts'

/** What fewer leave behind is kept for those that come next. */
const KEPT = 1 << 16

/**
 * A map from paths, for very many of them that come and go.
 *
 * FENCED: values in an array, found by the index that the tree has for its nodes.
 * Why: a `Map` whose entries come and go is made anew all the time, and each old one refers to the next one and to all that it
 * held: once one of them has grown old, a young collection takes whatever came behind it for alive. Half of the young objects
 * of a server under writes were kept for that reason alone. A large one is copied as a whole when it grows, too.
 * Oracle: a map, in `path-map.test.ts`.
 */
export class PathMap<V> {
  #index = new PathIndex(0)
  #values: (V | undefined)[] = []
  #free: number[] = []

  get size(): number {
    return this.#values.length - this.#free.length
  }

  /** `hash` is the same for a path each time, here and below: that of some `PathIndex`. */
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

  /** Whether it was there. */
  delete(path: string, hash: number): boolean {
    const at = this.#index.find(path, hash)
    if (at === NONE) return false
    this.#index.remove(at, hash)
    this.#values[at] = undefined
    this.#free.push(at)
    if (this.size === 0 && this.#values.length > KEPT) {
      this.#index = new PathIndex(0)
      this.#values = []
      this.#free = []
    }
    return true
  }
}
