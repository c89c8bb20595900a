/** A child of the queue's directory that waits in the queue. */
export interface Contender {
  readonly name: string
  /** Sequence number, 32 bits; it wraps around. */
  readonly sequence: number
  /** The digits of the sequence number as written in the name. */
  readonly suffix: string
  /** Shared contenders do not wait for each other. */
  readonly isShared: boolean
}

/** Parses a child name; returns undefined for a child that is no contender. */
export type ContenderParser = (name: string) => Contender | undefined

/**
 * Servers print the sequence number with a width of ten including a sign; negative numbers with ten digits need
 * one place more.
 */
const SEQUENCE_WIDTH = 10
const MINUS = 45
const ZERO = 48

/**
 * Creates a parser for names that end in one of these prefixes and a sequence number. The number must directly
 * follow its prefix, since a prefix may end in the same dash that makes a number negative.
 *
 * Every hand-over parses a whole queue, so the parser works on characters: with a hundred contenders, regular
 * expressions cost more than everything else.
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

/** Returns the digits from `start` to the end as a 32-bit number; undefined if there are other characters. */
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

/**
 * Returns a negative number when `a` was created before `b`. Directory counters wrap around, so this compares
 * their distance.
 */
export const compareSequence = (a: number, b: number): number => (a - b) | 0

export type TurnStatus =
  | { readonly turn: 'now' }
  | { readonly turn: 'behind'; readonly name: string }
  | { readonly turn: 'missing' }

/**
 * Returns whether it is this contender's turn. It waits for the nearest preceding contender that excludes it: the
 * end of that one wakes this one alone.
 */
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

/** Returns all contenders in queue order. */
export const contendersInOrder = (names: readonly string[], parse: ContenderParser): Contender[] =>
  names.flatMap((name) => parse(name) ?? []).sort((a, b) => compareSequence(a.sequence, b.sequence))
