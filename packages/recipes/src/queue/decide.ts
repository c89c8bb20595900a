import { compareSequence } from '../lock-queue/contenders.ts'
import type { Item, QueueLayout } from './names.ts'

/** What a consumer makes of a listing. */
export interface Choice {
  /** What can be had now, the most urgent first. */
  readonly ready: readonly Item[]
  /** When the first of the others falls due, by the clock of the servers; undefined for never. */
  readonly nextDue: number | undefined
  /** Items that others are at work on: they come back if that fails. */
  readonly busy: number
}

/** Sorts a listing into what a consumer can have and what it has to wait for. Foreign names are ignored. */
export function choose(
  names: readonly string[],
  claimed: ReadonlySet<string>,
  now: number,
  parse: QueueLayout['parse'],
): Choice {
  const ready: Item[] = []
  let nextDue: number | undefined
  let busy = 0
  for (const name of names) {
    const item = parse(name)
    if (item === undefined) continue
    if (claimed.has(name)) busy++
    else if (item.due > now) nextDue = Math.min(nextDue ?? Infinity, item.due)
    else ready.push(item)
  }
  return { ready: ready.sort(byUrgency), nextDue, busy }
}

/** Sequence numbers wrap: what counts is the way from one to the other. */
const byUrgency = (a: Item, b: Item): number =>
  a.priority - b.priority || compareSequence(a.sequence, b.sequence)

/** Listings up to this long are read anew for each item. */
const SHORT_LISTING = 64

/**
 * How many items of one listing a consumer works through before it looks again. Long listings are expensive, so the
 * number grows with their length, and with it how many items a more urgent newcomer cannot overtake.
 */
export const runLength = (ready: number): number =>
  ready <= SHORT_LISTING ? 1 : Math.floor(Math.sqrt(ready))
