/** What changed from one view of a group to the next. */
export interface Difference {
  readonly joined: readonly string[]
  readonly left: readonly string[]
  /** Members that stayed and hold something else. */
  readonly changed: readonly string[]
}

/** Compares two views: members and what each of them stands for. */
export function difference<T>(before: ReadonlyMap<string, T>, now: ReadonlyMap<string, T>): Difference {
  const joined = [...now.keys()].filter((id) => !before.has(id))
  const left = [...before.keys()].filter((id) => !now.has(id))
  const changed = [...now]
    .filter(([id, value]) => before.has(id) && before.get(id) !== value)
    .map(([id]) => id)
  return { joined, left, changed }
}
