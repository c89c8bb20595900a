/** Id of a server, as in its `myid` file. Never negative. */
export type ServerId = number

/** Decides whether a set of servers is a quorum. Ids of non-voters are ignored, so callers need not filter them. */
export interface QuorumVerifier {
  readonly voters: ReadonlySet<ServerId>
  /** Returns the voting weight of a server. A server with weight 0 cannot be elected. */
  weightOf(id: ServerId): number
  /** Returns whether these servers are a quorum. */
  isQuorum(ids: ReadonlySet<ServerId>): boolean
  /** Number of voters that make a quorum; absent for a hierarchy, where the number alone does not decide. */
  readonly quorumSize?: number
  /**
   * Whether one of two voters can lead alone when the oracle, a source outside the ensemble, reports that the other one is
   * down (quorum-protocol 2.5). This trades safety for availability: with a wrong oracle both servers lead alone.
   */
  readonly canAskOracle: boolean
}

/** Returns the verifier for which more than half of the voters are a quorum (quorum-protocol 2.3). */
export function majority(
  voters: Iterable<ServerId>,
  { oracle = false }: { oracle?: boolean } = {},
): QuorumVerifier {
  const all = new Set(voters)
  const half = Math.floor(all.size / 2)
  return {
    voters: all,
    weightOf: (id) => (all.has(id) ? 1 : 0),
    isQuorum: (ids) => countIn(all, ids) > half,
    quorumSize: half + 1,
    // With more than two voters a majority survives the loss of one, so no oracle is needed.
    canAskOracle: oracle && all.size === 2,
  }
}

function countIn(voters: ReadonlySet<ServerId>, ids: ReadonlySet<ServerId>): number {
  let count = 0
  for (const id of voters) if (ids.has(id)) count++
  return count
}

/** Groups of voters, and the weight of each voter. */
export interface Hierarchy {
  /** Voters by group id. Each voter is in exactly one group. */
  readonly groups: ReadonlyMap<number, readonly ServerId[]>
  /** Weight by voter; 1 for a voter that is absent here. */
  readonly weights: ReadonlyMap<ServerId, number>
}

/**
 * Returns the verifier for which a quorum has more than half of the weight in each of more than half of the groups
 * (quorum-protocol 2.4). Groups with a total weight of 0 do not count.
 */
export function hierarchical({ groups, weights }: Hierarchy): QuorumVerifier {
  const weightOf = new Map<ServerId, number>()
  for (const members of groups.values()) for (const id of members) weightOf.set(id, weights.get(id) ?? 1)
  const weigh = (members: readonly ServerId[], among?: ReadonlySet<ServerId>): number =>
    members.reduce((sum, id) => (among?.has(id) === false ? sum : sum + weightOf.get(id)!), 0)
  const counted = [...groups.values()]
    .map((members) => ({ members, half: Math.floor(weigh(members) / 2), total: weigh(members) }))
    .filter(({ total }) => total > 0)
  const half = Math.floor(counted.length / 2)
  return {
    voters: new Set(weightOf.keys()),
    weightOf: (id) => weightOf.get(id) ?? 0,
    isQuorum: (ids) => counted.filter((group) => weigh(group.members, ids) > group.half).length > half,
    canAskOracle: false,
  }
}

/**
 * The verifier of the active configuration, and that of the last proposed one while that is newer. With both, every
 * decision needs a quorum of each (quorum-protocol 14.2).
 */
export interface QuorumVerifiers {
  readonly active: QuorumVerifier
  readonly proposed?: QuorumVerifier
}

/** Returns whether these servers are a quorum of both configurations. */
export function isQuorumOfAll({ active, proposed }: QuorumVerifiers, ids: ReadonlySet<ServerId>): boolean {
  return active.isQuorum(ids) && (proposed === undefined || proposed.isQuorum(ids))
}

/** Returns the voters of either configuration, in ascending order. */
export function votersOfAll({ active, proposed }: QuorumVerifiers): ServerId[] {
  return [...new Set([...active.voters, ...(proposed?.voters ?? [])])].sort((a, b) => a - b)
}
