/** Up to which feature level an ensemble has given up going back to earlier releases, as one of its members has stored it. */
export interface FeatureState {
  /** The level whose formats and packets may be used: all members of the ensemble have stored it. 0 for none. */
  readonly finalized: number
  /** A higher level that a leader has proposed and that not all members are known to have stored; 0 for none. */
  readonly proposed: number
}

/** The highest level that two bytes hold. */
export const MAX_FEATURE_LEVEL = 0xffff

/** The state of a member whose ensemble may go back to any release, and to Apache ZooKeeper. */
export const NOT_FINALIZED: FeatureState = { finalized: 0, proposed: 0 }

/**
 * Returns the level that a release needs to work with the data of a member. A proposed level counts: the leader that has proposed it may
 * have finalized it, so there may be data of that level.
 */
export const requiredLevel = ({ finalized, proposed }: FeatureState): number => Math.max(finalized, proposed)

export const isSameState = (a: FeatureState, b: FeatureState): boolean =>
  a.finalized === b.finalized && a.proposed === b.proposed

/**
 * Returns the state of a member that follows a leader with another one. A finalized level stays for good. A proposed one is that of the
 * leader: if the leader has none, no leader has finalized it (quorum-protocol 18.9).
 */
export function afterLeader(own: FeatureState, { finalized: other, proposed }: FeatureState): FeatureState {
  const finalized = Math.max(own.finalized, other)
  return { finalized, proposed: proposed > finalized ? proposed : 0 }
}
