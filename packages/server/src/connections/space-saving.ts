/** What is known of a key: `weight` is at most `overcount` above the truth, and the other figures at most below it. */
export interface HeavyKey {
  readonly key: string
  weight: number
  overcount: number
  operations: number
  bytes: number
  timeMs: number
}

/** What one request adds to a key. */
export interface Usage {
  readonly operations: number
  readonly bytes: number
  readonly timeMs: number
}

/**
 * Finds the heaviest keys of a stream in bounded memory (Metwally, Agrawal, El Abbadi: Space-Saving): a new key takes the place of
 * the lightest one and its weight, so that each key above the mean weight of a place is there.
 */
export class SpaceSaving {
  readonly #capacity: number
  readonly #keys = new Map<string, HeavyKey>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get keys(): Iterable<HeavyKey> {
    return this.#keys.values()
  }

  /** Adds the usage of one request, which weighs `weight`. */
  add(key: string, weight: number, { operations, bytes, timeMs }: Usage): void {
    const entry = this.#keys.get(key) ?? this.#insert(key, weight)
    if (entry === undefined) return
    entry.weight += weight
    entry.operations += operations
    entry.bytes += bytes
    entry.timeMs += timeMs
  }

  #insert(key: string, weight: number): HeavyKey | undefined {
    let overcount = 0
    if (this.#keys.size === this.#capacity) {
      // A request without weight displaces no other.
      if (weight === 0) return undefined
      let lightest: HeavyKey | undefined
      for (const one of this.#keys.values())
        if (lightest === undefined || one.weight < lightest.weight) lightest = one
      overcount = lightest!.weight
      this.#keys.delete(lightest!.key)
    }
    const entry = { key, weight: overcount, overcount, operations: 0, bytes: 0, timeMs: 0 }
    this.#keys.set(key, entry)
    return entry
  }
}
