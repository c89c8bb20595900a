import { compareSequence } from '../lock-queue/contenders.ts'
import type { Item, QueueLayout } from './names.ts'

/** A listing, as a consumer sees it. */
export interface Choice {
  /** Items that can be claimed now, the most urgent first. */
  readonly ready: readonly Item[]
  /** Server time at which the next delayed item becomes due; undefined if there is none. */
  readonly nextDue: number | undefined
}

/** Selects the items that can be claimed now and the next due time. Skips claimed items and names that are no items. */
export function choose(
  names: readonly string[],
  claimed: ReadonlySet<string>,
  now: number,
  parse: QueueLayout['parse'],
): Choice {
  const ready: Item[] = []
  let nextDue: number | undefined
  for (const name of names) {
    const item = parse(name)
    if (item === undefined) continue
    if (claimed.has(name)) continue
    if (item.due > now) nextDue = Math.min(nextDue ?? Infinity, item.due)
    else ready.push(item)
  }
  return { ready: ready.sort(byUrgency), nextDue }
}

/** Sequence numbers wrap around, so this compares their distance. */
const byUrgency = (a: Item, b: Item): number =>
  a.priority - b.priority || compareSequence(a.sequence, b.sequence)

/** Listings up to this length are read again for each item. */
const SHORT_LISTING = 64

/**
 * Returns how many items of one listing a consumer processes before it lists again. Long listings are expensive,
 * so the number grows with their length, and with it how many items a more urgent new item cannot overtake.
 */
export const runLength = (ready: number): number =>
  ready <= SHORT_LISTING ? 1 : Math.floor(Math.sqrt(ready))
