/** What a leaving member does next. */
export type LeaveStep =
  | { readonly do: 'done' }
  | { readonly do: 'leave'; readonly last: boolean }
  | { readonly do: 'wait'; readonly forDeletionOf: string }

/**
 * Returns the next step of leaving, given the members that are still inside. The lowest member stays until it is
 * the last one and waits for the others from the highest down; all others delete their znode at once and wait for
 * the lowest. So each deletion wakes at most one member, and the deletion of the lowest wakes all.
 */
export function nextLeaveStep(members: readonly string[], own: string): LeaveStep {
  const inside = members.toSorted()
  const [lowest] = inside
  if (lowest === undefined) return { do: 'done' }
  if (lowest !== own)
    return inside.includes(own) ? { do: 'leave', last: false } : { do: 'wait', forDeletionOf: lowest }
  return inside.length === 1 ? { do: 'leave', last: true } : { do: 'wait', forDeletionOf: inside.at(-1)! }
}

/** Returns the current round of a barrier. Data that is not a number counts as round 0 of an unused barrier. */
export function roundOf(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : 0
}
