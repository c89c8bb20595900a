import { checkVoters } from './check-voters.ts'
import { finding, type Finding } from './finding.ts'

const DAY_MS = 86_400_000

/** The answer of `GET /api/v1/self`. */
export interface SelfAnswer {
  readonly ready: boolean
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
  /** Absent in answers of older servers, as those below. */
  readonly id?: number
  readonly uptimeMs?: number
  /** By their keys in `zoo.cfg`, without secrets. */
  readonly settings?: Readonly<Record<string, string>>
}

/** The answer of `GET /api/v1/cluster`. */
export interface ClusterAnswer {
  /** Negative without a quorum, null where groups make it depend on which voters fail. */
  readonly failuresLeft: number | null
  /** Absent in answers of older servers. */
  readonly clusterId?: string | null
  /** The same. */
  readonly features?: {
    readonly finalized: number
    readonly members: readonly { readonly release: number | null }[] | null
    /** At the leader: how long a higher level could have been finalized. */
    readonly readyForMs: number | null
  }
  readonly members: readonly {
    readonly id: number
    readonly state: string
    readonly softwareVersion: string | null
    readonly problem: string | null
    /** Absent in answers of older servers, as the one below. */
    readonly participant?: boolean
    /** Host and port, several separated by `|`; null on a standalone server. */
    readonly address?: string | null
  }[]
}

/** Checks a running server, and its ensemble as it sees it. */
export function* checkRunning(url: string, self: SelfAnswer, cluster: ClusterAnswer): Generator<Finding> {
  yield* checkSettingsInForce(url, self.settings)
  for (const { name, ok, detail } of self.checks)
    if (!ok)
      yield finding(
        'not-ready',
        url,
        `${name}: ${detail}`,
        'Wait, or mend what the check names; the page says what each means.',
      )
  for (const { id, problem, state } of cluster.members)
    if (problem !== null && state === 'unknown')
      yield finding(
        'member-down',
        `server ${id}`,
        problem,
        'Start it, or open its client port to the members.',
      )
  if (cluster.members.length > 2 && cluster.failuresLeft === 0)
    yield finding(
      'no-failure-left',
      url,
      'the next member that fails stops the ensemble',
      'Start the members that are down.',
    )
  if (
    cluster.members.length > 1 &&
    (cluster.failuresLeft ?? -1) < 0 &&
    !cluster.members.some(({ state }) => state === 'leader')
  )
    yield finding(
      'no-quorum',
      url,
      'no member leads, so nothing can be written',
      'Start the members that are down. Only where a majority is lost for good, with its disks, follow the page.',
    )
  const voters = cluster.members.filter(({ participant }) => participant === true)
  const hosts = voters.map(({ address }) => address?.split('|')[0]?.replace(/:\d+$/, ''))
  yield* checkVoters(url, hosts)
  if (cluster.clusterId === null)
    yield finding(
      'cluster-id',
      url,
      'the ensemble has no id, so a member of another ensemble is not refused',
      'Once each voter runs Zabra, elect another leader with zabra transfer.',
    )
  yield* checkFeatures(url, cluster.features)
  const versions = new Set(
    cluster.members.flatMap(({ softwareVersion }) => softwareVersion?.split(',')[0] ?? []),
  )
  if (versions.size > 1)
    yield finding('versions', url, `members run ${[...versions].join(' and ')}`, 'Finish the upgrade.')
}

/** The settings of a running server may not be those that its file has now. */
function* checkSettingsInForce(url: string, settings: SelfAnswer['settings'] = {}): Generator<Finding> {
  if (settings['skipACL'] === 'true')
    yield finding('skip-acl', url, 'skipACL is on: no access list is checked', 'Remove skipACL.')
  if (settings['forceSync'] === 'false')
    yield finding(
      'no-sync',
      url,
      'forceSync is off: a power cut loses acknowledged writes, and can elect a member that lacks them',
      'Remove forceSync.',
    )
  if (settings['audit.enable'] === 'false')
    yield finding(
      'no-audit',
      url,
      'audit.enable is off: who has changed what is not recorded',
      'Set audit.enable=true where that must be known later.',
    )
}

/** Only the leader knows the levels of all members. */
function* checkFeatures(url: string, features: ClusterAnswer['features']): Generator<Finding> {
  if (features === undefined || features.members === null || features.readyForMs === null) return
  const level = Math.min(...features.members.map(({ release }) => release ?? 0))
  const days = Math.floor(features.readyForMs / DAY_MS)
  if (level > features.finalized)
    yield finding(
      'not-finalized',
      url,
      `all members are at feature level ${level}, which has not been finalized for ${days === 1 ? 'a day' : `${days} days`}`,
      'Once none of them shall go back to an earlier release, run zabra cluster finalize.',
    )
}
