import leven from 'leven'

/** Most letters by which a mistyped name may differ. */
const MAX_DISTANCE = 2

/** Returns the name that a mistyped one resembles most; undefined when there is none. */
export function closestName(typed: string, names: Iterable<string>): string | undefined {
  const lower = typed.toLowerCase()
  const distance = (name: string): number => leven(lower, name.toLowerCase())
  const near = [...names].filter((name) => distance(name) <= MAX_DISTANCE && distance(name) < name.length)
  return near.toSorted((a, b) => distance(a) - distance(b))[0]
}
