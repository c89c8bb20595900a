/** A child of a directory that stands in its line. */
export interface Contender {
  readonly name: string
  /** Its place, as a serial number of 32 bits: it wraps. */
  readonly sequence: number
  /** The digits as they stand in the name. */
  readonly suffix: string
  /** Shared contenders do not wait for each other. */
  readonly isShared: boolean
}

/** Reads a name, or finds that it is none of the line's. */
export type ContenderParser = (name: string) => Contender | undefined

/** Servers print a number within the width of ten, its sign included; ten digits below zero need one place more. */
const SEQUENCE_WIDTH = 10
const MINUS = 45
const ZERO = 48

/**
 * Reads names that end in one of these words and a number. The number follows its word directly, since a word may end in
 * the very dash that makes a number negative.
 *
 * Each hand-over reads a whole line, so this goes by characters: with a hundred in line, patterns cost more than all else.
 */
export function createParser(exclusive: readonly string[], shared: readonly string[] = []): ContenderParser {
  return (name) => {
    for (let width = SEQUENCE_WIDTH; width <= SEQUENCE_WIDTH + 1; width++) {
      const end = name.length - width
      const sequence = numberAt(name, end, width > SEQUENCE_WIDTH)
      if (sequence === undefined) continue
      const together = endsIn(name, shared, end)
      if (!together && !endsIn(name, exclusive, end)) continue
      return { name, sequence, suffix: name.slice(end), isShared: together }
    }
    return undefined
  }
}

function endsIn(name: string, words: readonly string[], end: number): boolean {
  for (const word of words) if (name.endsWith(word, end)) return true
  return false
}

/** The digits from here to the end, as a number of 32 bits; undefined when there are others. */
function numberAt(name: string, start: number, signed: boolean): number | undefined {
  if (start < 0) return undefined
  const negative = name.charCodeAt(start) === MINUS
  if (signed && !negative) return undefined
  let value = 0
  for (let at = negative ? start + 1 : start; at < name.length; at++) {
    const digit = name.charCodeAt(at) - ZERO
    if (digit < 0 || digit > 9) return undefined
    value = value * 10 + digit
  }
  return (negative ? -value : value) | 0
}

/** Below 0 when `a` was created before `b`. The counter of a directory wraps, so this looks at their distance. */
export const compareSequence = (a: number, b: number): number => (a - b) | 0

export type TurnStatus =
  | { readonly turn: 'now' }
  | { readonly turn: 'behind'; readonly name: string }
  | { readonly turn: 'missing' }

/** The one to wait for is the nearest of those that stand before us and exclude us: its end wakes us and nobody else. */
export function turnStatusOf(names: readonly string[], own: string, parse: ContenderParser): TurnStatus {
  const me = parse(own)
  if (me === undefined) return { turn: 'missing' }
  let found = false
  let nearest: Contender | undefined
  for (const name of names) {
    if (name === own) found = true
    const other = parse(name)
    if (other === undefined || name === own || (other.isShared && me.isShared)) continue
    if (compareSequence(other.sequence, me.sequence) >= 0) continue
    if (nearest === undefined || compareSequence(other.sequence, nearest.sequence) > 0) nearest = other
  }
  if (!found) return { turn: 'missing' }
  return nearest === undefined ? { turn: 'now' } : { turn: 'behind', name: nearest.name }
}

/** All contenders, the first one first. */
export const contendersInOrder = (names: readonly string[], parse: ContenderParser): Contender[] =>
  names.flatMap((name) => parse(name) ?? []).sort((a, b) => compareSequence(a.sequence, b.sequence))
