export type Decision = 'committed' | 'aborted'
export type Vote = 'commit' | 'abort'

/** Input of the decision. */
export interface VotingState {
  readonly participants: readonly string[]
  readonly votes: ReadonlyMap<string, Vote>
  /** Sites that were present and are gone. */
  readonly lost: ReadonlySet<string>
  readonly isDeadlinePassed: boolean
  /** True when the coordinator gave the transaction up. */
  readonly isGivenUp: boolean
}

/** Returns the decision that the votes allow, or undefined while votes may still arrive. */
export function decide({
  participants,
  votes,
  lost,
  isDeadlinePassed: deadlinePassed,
  isGivenUp: givenUp,
}: VotingState): Decision | undefined {
  if (participants.some((site) => votes.get(site) === 'abort')) return 'aborted'
  const missing = participants.filter((site) => !votes.has(site))
  if (missing.length === 0) return 'committed'
  // A vote is binding. A site without a vote that is gone or late will not commit.
  return givenUp || deadlinePassed || missing.some((site) => lost.has(site)) ? 'aborted' : undefined
}

/** Data of a transaction's znode. */
export interface TransactionRecord {
  readonly state: 'voting' | Decision
  readonly participants: readonly string[]
  /** Base64. */
  readonly payload: string
  /** Milliseconds after the creation of the znode. */
  readonly deadlineMs: number
}

/**
 * Returns whether to delete a transaction: all sites have applied it, and its coordinator knows the decision or is
 * gone.
 */
export function isDone(
  { participants }: Pick<TransactionRecord, 'participants'>,
  acks: number,
  coordinatorWaits: boolean,
): boolean {
  return acks >= participants.length && !coordinatorWaits
}

/** Name of the coordinator among the sites; no site has it, because site names are encoded. */
export const COORDINATOR = '%coordinator'
