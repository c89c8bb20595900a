import { DEFAULT_KEY, hashText } from './text-map.ts'

/**
 * A set of paths that finds those of them which a given path lies below.
 *
 * Optimised: one pass over the characters of the given path, with a hash that is looked up at each `/`.
 * Why: to look up each ancestor as a text of its own takes time by the square of the depth: 258 ms for 6,000 levels.
 * Rules: equal hashes are not proof, so a candidate has yet to be compared.
 * Tested against `startsWith`, in `path-prefixes.test.ts`.
 */
export class PathPrefixes {
  /** The paths with each hash; nearly always one. */
  readonly #byHash = new Map<number, string[]>()
  readonly #key: number
  /** No path of the set is longer. */
  #longest = 0
  size = 0

  /** `key` is secret: a client that knew it could choose paths with equal hashes. */
  constructor(key = DEFAULT_KEY) {
    this.#key = key | 1
  }

  has(path: string): boolean {
    return this.#byHash.get(hashText(path, this.#key))?.includes(path) === true
  }

  add(path: string): void {
    const hash = hashText(path, this.#key)
    const paths = this.#byHash.get(hash)
    if (paths === undefined) this.#byHash.set(hash, [path])
    else if (paths.includes(path)) return
    else paths.push(path)
    this.size++
    this.#longest = Math.max(this.#longest, path.length)
  }

  delete(path: string): void {
    const hash = hashText(path, this.#key)
    const paths = this.#byHash.get(hash)
    const at = paths?.indexOf(path) ?? -1
    if (at === -1) return
    if (paths!.length === 1) this.#byHash.delete(hash)
    else paths!.splice(at, 1)
    if (--this.size === 0) this.#longest = 0
  }

  /**
   * Calls `visit` for the candidates among the ancestors of a path, the highest first: paths of the set with the hash and the
   * length of an ancestor. A candidate is an ancestor if the path starts with it.
   */
  forEachCandidate(path: string, visit: (candidate: string) => void): void {
    const end = Math.min(path.length - 1, this.#longest)
    // As `hashText`.
    let hash = this.#key
    for (let i = 0; i <= end; i++) {
      const code = path.charCodeAt(i)
      if (code === SLASH && i > 0) this.#visit(hash, i, visit)
      hash = Math.imul(hash ^ code, this.#key)
      hash ^= hash >>> 15
      if (i === 0 && code === SLASH && path.length > 1) this.#visit(hash, 1, visit)
    }
  }

  *[Symbol.iterator](): Generator<string, void> {
    for (const paths of this.#byHash.values()) yield* paths
  }

  #visit(hash: number, length: number, visit: (candidate: string) => void): void {
    const paths = this.#byHash.get(hash)
    if (paths !== undefined) for (const path of paths) if (path.length === length) visit(path)
  }
}

const SLASH = 0x2f
