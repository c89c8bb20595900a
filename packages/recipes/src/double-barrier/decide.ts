/** What somebody who leaves does next. */
export type LeaveStep =
  | { readonly do: 'nothing' }
  | { readonly do: 'goAway'; readonly last: boolean }
  | { readonly do: 'wait'; readonly forEndOf: string }

/**
 * The next step of leaving, by who is still inside. The lowest member stays until nobody else is left, and waits for the
 * others from the top down; all others go at once and wait for it. So each that goes wakes one at most, and the lowest, the
 * last to go, wakes all.
 */
export function nextLeaveStep(members: readonly string[], own: string): LeaveStep {
  const inside = members.toSorted()
  const [lowest] = inside
  if (lowest === undefined) return { do: 'nothing' }
  if (lowest !== own)
    return inside.includes(own) ? { do: 'goAway', last: false } : { do: 'wait', forEndOf: lowest }
  return inside.length === 1 ? { do: 'goAway', last: true } : { do: 'wait', forEndOf: inside.at(-1)! }
}

/** The round that a barrier is in. Whatever is no number is a barrier that was never used. */
export function roundOf(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : 0
}
