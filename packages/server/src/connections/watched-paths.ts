import { TextMap } from '../core/text-map.ts'
import type { PathSet } from '../core/watches/index.ts'

/**
 * Memory of a watch beside its path, in bytes: entries in the set of its connection, in the table of the server and, for recursive
 * watches, in the set of their paths.
 */
const WATCH_BYTES = 250
/** Memory that the watches of one connection may take: some two hundred thousand on ordinary paths. */
export const MAX_WATCH_BYTES = 2 ** 26

/** The paths that a connection watches. Counts the memory of the watches. */
export class WatchedPaths implements PathSet {
  bytes = 0
  readonly #paths: TextMap<true>

  /** `hashKey` is the secret key of `TextMap`. */
  constructor(hashKey?: number) {
    this.#paths = new TextMap(hashKey)
  }

  get size(): number {
    return this.#paths.size
  }

  add(path: string): void {
    const { size } = this
    this.#paths.set(path, true)
    if (this.size > size) this.bytes += path.length + WATCH_BYTES
  }

  delete(path: string): boolean {
    const isDeleted = this.#paths.delete(path)
    if (isDeleted) this.bytes -= path.length + WATCH_BYTES
    return isDeleted
  }

  [Symbol.iterator](): Generator<string, void> {
    return this.#paths.keys()
  }
}
