/** What a waiter saw of the barrier: the transaction that made it, or undefined when it is not there. */
export type Seen = bigint | undefined

/**
 * Whether a waiter may pass. With `generation` it also passes a barrier that was removed and set again since it began to
 * wait: the transaction that made it is another one.
 */
export function passes(now: Seen, first: Seen, generation: boolean): boolean {
  return now === undefined || (generation && now !== first)
}
