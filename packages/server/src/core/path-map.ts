const SHARDS = 64

/**
 * A map from paths, for very many of them. It is made of small maps, since a map that grows is copied as a whole, and that would
 * hold the event loop for the longer the larger it is.
 */
export class PathMap<V> {
  readonly #shards: Map<string, V>[] = Array.from({ length: SHARDS }, () => new Map<string, V>())

  get size(): number {
    let size = 0
    for (const shard of this.#shards) size += shard.size
    return size
  }

  get(path: string): V | undefined {
    return this.#shard(path).get(path)
  }

  set(path: string, value: V): void {
    this.#shard(path).set(path, value)
  }

  /** Whether it was there. */
  delete(path: string): boolean {
    return this.#shard(path).delete(path)
  }

  *[Symbol.iterator](): Generator<[path: string, value: V]> {
    for (const shard of this.#shards) yield* shard
  }

  #shard(path: string): Map<string, V> {
    const { length } = path
    const last = length > 0 ? path.charCodeAt(length - 1) : 0
    const before = length > 1 ? path.charCodeAt(length - 2) : 0
    return this.#shards[(last * 31 + before * 7 + length) & (SHARDS - 1)]!
  }
}
