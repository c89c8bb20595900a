/** What a waiter saw of the barrier: the transaction that made it, or undefined when it is not there. */
export type SeenVersion = bigint | undefined

/**
 * Whether a waiter may pass. With `generation` it also passes a barrier that was removed and set again since it began to
 * wait: the transaction that made it is another one.
 */
export function canPass(now: SeenVersion, first: SeenVersion, generation: boolean): boolean {
  return now === undefined || (generation && now !== first)
}
