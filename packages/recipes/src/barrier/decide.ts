/** The czxid of the barrier as a waiter read it, or undefined when the barrier does not exist. */
export type SeenVersion = bigint | undefined

/**
 * Returns whether a waiter may pass. With `generation` it also passes a barrier that was removed and set again
 * since the wait began, recognised by a different czxid.
 */
export function canPass(now: SeenVersion, first: SeenVersion, generation: boolean): boolean {
  return now === undefined || (generation && now !== first)
}
