/** A server's id, as `myid` has it. Negative ones are no server's. */
export type ServerId = number

/** The judge of what a quorum is. Ids that are not voters weigh nothing, so a caller may pass whoever answered. */
export interface QuorumVerifier {
  readonly voters: ReadonlySet<ServerId>
  /** What the voice of a server counts: 0 for those without one, who can never lead. */
  weightOf(id: ServerId): number
  /** Whether these servers together may decide. */
  isQuorum(ids: ReadonlySet<ServerId>): boolean
  /** How many voters are a quorum, where any so many are; absent where voices are weighed. */
  readonly quorumSize?: number
  /**
   * Whether one voter may go on alone on the word of an oracle, somebody outside of the ensemble who knows that the other
   * one is down. It trades safety for availability: two servers and a wrong oracle can each go on alone.
   */
  readonly canAskOracle: boolean
}

/** More than half of the voters. */
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
    // With more than two voters a majority survives the loss of one, and the oracle is not asked.
    canAskOracle: oracle && all.size === 2,
  }
}

function countIn(voters: ReadonlySet<ServerId>, ids: ReadonlySet<ServerId>): number {
  let count = 0
  for (const id of voters) if (ids.has(id)) count++
  return count
}

/** Voters in groups, each voter with a weight. */
export interface Hierarchy {
  /** Members by the id of their group. A voter is in exactly one group. */
  readonly groups: ReadonlyMap<number, readonly ServerId[]>
  /** 1 for a voter that is not named. */
  readonly weights: ReadonlyMap<ServerId, number>
}

/** More than half of the weight in more than half of the groups; groups without weight do not exist for it. */
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
 * The judges of a moment: the configuration in force, and the one that was proposed last when it is newer. While there
 * are two, whatever is decided needs a quorum of each.
 */
export interface QuorumVerifiers {
  readonly active: QuorumVerifier
  readonly proposed?: QuorumVerifier
}

/** Whether these servers are a quorum of every configuration that matters. */
export function isQuorumOfAll({ active, proposed }: QuorumVerifiers, ids: ReadonlySet<ServerId>): boolean {
  return active.isQuorum(ids) && (proposed === undefined || proposed.isQuorum(ids))
}

/** Voters of any configuration that matters, in ascending order. */
export function votersOfAll({ active, proposed }: QuorumVerifiers): ServerId[] {
  return [...new Set([...active.voters, ...(proposed?.voters ?? [])])].sort((a, b) => a - b)
}
