import { MAX_HASHED } from '../text-map.ts'

type Call = (this: unknown, ...values: unknown[]) => unknown

/**
 * Returns the most texts above 16,383 characters that are added to one `Map` or `Set` while an action runs: V8 compares each of
 * them with all others of its length.
 */
export function mostLongKeys(action: () => void): number {
  const counts = new Map<object, number>()
  const set = Reflect.get(Map.prototype, 'set') as Call
  const add = Reflect.get(Set.prototype, 'add') as Call
  const note = (keys: { has(key: unknown): boolean }, key: unknown): void => {
    if (typeof key === 'string' && key.length > MAX_HASHED && !keys.has(key))
      set.call(counts, keys, (counts.get(keys) ?? 0) + 1)
  }
  Map.prototype.set = function (key, value) {
    note(this, key)
    return set.call(this, key, value) as Map<unknown, unknown>
  }
  Set.prototype.add = function (key) {
    note(this, key)
    return add.call(this, key) as Set<unknown>
  }
  try {
    action()
  } finally {
    Map.prototype.set = set as Map<unknown, unknown>['set']
    Set.prototype.add = add as Set<unknown>['add']
  }
  return Math.max(0, ...counts.values())
}
