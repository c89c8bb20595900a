/** A child of a directory that stands in its line. */
export interface Contender {
  readonly name: string
  /** Its place, as a serial number of 32 bits: it wraps. */
  readonly sequence: number
  /** The digits as they stand in the name. */
  readonly suffix: string
  /** Shared contenders do not wait for each other. */
  readonly shared: boolean
}

/** Reads a name, or finds that it is none of the line's. */
export type Parse = (name: string) => Contender | undefined

/**
 * Reads names that end in one of these words and a number. The number follows its word directly, since a word may end in
 * the very dash that makes a number negative.
 */
export function parserOf(exclusive: readonly string[], shared: readonly string[] = []): Parse {
  const pattern = (words: readonly string[]): RegExp => new RegExp(`(?:${words.join('|')})(-?\\d{9,10})$`)
  const alone = pattern(exclusive)
  const together = shared.length === 0 ? undefined : pattern(shared)
  return (name) => {
    const read = together?.exec(name)
    const match = read ?? alone.exec(name)
    if (!match) return undefined
    return { name, sequence: Number(match[1]) | 0, suffix: match[1]!, shared: Boolean(read) }
  }
}

/** Below 0 when `a` was created before `b`. The counter of a directory wraps, so this looks at their distance. */
export const serial = (a: number, b: number): number => (a - b) | 0

export type Verdict =
  | { readonly turn: 'now' }
  | { readonly turn: 'behind'; readonly name: string }
  | { readonly turn: 'missing' }

/** The one to wait for is the nearest of those that stand before us and exclude us: its end wakes us and nobody else. */
export function verdictOf(names: readonly string[], own: string, parse: Parse): Verdict {
  const me = names.includes(own) ? parse(own) : undefined
  if (me === undefined) return { turn: 'missing' }
  let nearest: Contender | undefined
  for (const name of names) {
    const other = parse(name)
    if (other === undefined || name === own || (other.shared && me.shared)) continue
    if (serial(other.sequence, me.sequence) >= 0) continue
    if (nearest === undefined || serial(other.sequence, nearest.sequence) > 0) nearest = other
  }
  return nearest === undefined ? { turn: 'now' } : { turn: 'behind', name: nearest.name }
}

/** All contenders, the first one first. */
export const inOrder = (names: readonly string[], parse: Parse): Contender[] =>
  names.flatMap((name) => parse(name) ?? []).sort((a, b) => serial(a.sequence, b.sequence))
