/** The difference between two views of a group. */
export interface Difference {
  readonly joined: readonly string[]
  readonly left: readonly string[]
  /** Ids of members that stayed and changed their value. */
  readonly changed: readonly string[]
}

/** Compares two views, each a map from member id to value. */
export function difference<T>(before: ReadonlyMap<string, T>, now: ReadonlyMap<string, T>): Difference {
  const joined = [...now.keys()].filter((id) => !before.has(id))
  const left = [...before.keys()].filter((id) => !now.has(id))
  const changed = [...now]
    .filter(([id, value]) => before.has(id) && before.get(id) !== value)
    .map(([id]) => id)
  return { joined, left, changed }
}
