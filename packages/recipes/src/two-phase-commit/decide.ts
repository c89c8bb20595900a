export type Decision = 'committed' | 'aborted'
export type Vote = 'commit' | 'abort'

/** All that a decision depends on. */
export interface VotingState {
  readonly participants: readonly string[]
  readonly votes: ReadonlyMap<string, Vote>
  /** Sites that were there and are gone. */
  readonly lost: ReadonlySet<string>
  readonly isDeadlinePassed: boolean
  /** The coordinator does not want it any more. */
  readonly isGivenUp: boolean
}

/** The one decision that the votes allow, or undefined as long as there is reason to wait. */
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
  // Who has voted has promised; who has not, and is gone, late or no longer wanted, never will.
  return givenUp || deadlinePassed || missing.some((site) => lost.has(site)) ? 'aborted' : undefined
}

/** What the znode of a transaction holds. */
export interface TransactionRecord {
  readonly state: 'voting' | Decision
  readonly participants: readonly string[]
  /** In base64. */
  readonly payload: string
  /** Milliseconds after the making of the znode. */
  readonly deadlineMs: number
}

/** Whether to forget a transaction: all sites have applied it, and its coordinator knows of the decision or is no more. */
export function isDone(
  { participants }: Pick<TransactionRecord, 'participants'>,
  acks: number,
  coordinatorWaits: boolean,
): boolean {
  return acks >= participants.length && !coordinatorWaits
}

/** The coordinator among the sites: a name that no site has, since theirs are encoded. */
export const COORDINATOR = '%coordinator'
