/** What `GET /api/v1/cluster` says that an upgrade depends on. */
export interface UpgradedCluster {
  readonly leader: number | null
  readonly failuresLeft: number | null
  readonly features?: {
    readonly release: number
    readonly finalized: number
    readonly proposed: number | null
  }
  readonly members: readonly UpgradedMember[]
}

export interface UpgradedMember {
  readonly id: number
  /** The addresses between members, separated by `|`; null on a standalone server. */
  readonly address?: string | null
  readonly state: string
  readonly participant: boolean
  readonly softwareVersion: string | null
  readonly problem: string | null
}

/** The order in which members are replaced, and what is in the way of beginning. */
export interface UpgradePlan {
  /** Observers, then followers, the leader last. */
  readonly order: readonly UpgradedMember[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
}

/** Plans the replacement of all members of an ensemble by those of another release. */
export function planUpgrade({ leader, failuresLeft, features, members }: UpgradedCluster): UpgradePlan {
  const rank = ({ id, participant }: UpgradedMember): number => {
    if (id === leader) return 2
    return participant ? 1 : 0
  }
  const order = members.toSorted((a, b) => rank(a) - rank(b) || a.id - b.id)
  const problems = order
    .filter(({ problem }) => problem !== null)
    .map(({ id, problem }) => `server ${id}: ${problem}`)
  const voters = members.filter(({ participant }) => participant).length
  if (leader === null && members.length > 1) problems.push('the ensemble has no leader')
  if (voters > 2 && failuresLeft !== null && failuresLeft < 1)
    problems.push('the next voter that stops takes the quorum with it: start those that are down')
  if (features !== undefined && features.proposed !== null)
    problems.push(`feature level ${features.proposed} waits for members to store it: start them`)
  const notes: string[] = []
  if (voters < 3) notes.push('an ensemble of fewer than three voters serves no clients while one restarts')
  const versions = new Set(members.flatMap(({ softwareVersion }) => softwareVersion?.split(',')[0] ?? []))
  if (versions.size > 1)
    notes.push(`members run ${[...versions].join(' and ')}: go on with those of the earlier release`)
  if (features !== undefined && features.release > features.finalized)
    notes.push(
      `feature level ${features.release} of the running release is not finalized: do that with zabra cluster finalize before the next upgrade`,
    )
  return { order, problems, notes }
}
