import { defaults, parseConfiguration, type EnsembleConfiguration, type ServerSettings } from '@zabra/server'
import type { Role } from './membership.ts'
import { OBSERVER_PORT } from './observer-monitor.ts'
import { MEMBERSHIP_CHANGES, type GroupsPlan, type Plan } from './plan.ts'
import { CLIENT_PORT } from '@zabra/testing'

export const DATA_DIR = '/data'

/** Ticks that a member may be silent. */
export const SYNC_LIMIT = 4

const QUORUM_PORT = 2888
const ELECTION_PORT = 3888

/** Who the operator of a run is, with the digest that servers know, and how it proves that. */
export const SUPER_USER = { digest: 'super:lK75jTNcA+U9vtVEw5vB51mj/w4=', credentials: 'super:secret' }

/** The line of a server in a configuration. */
export const memberLine = (id: number, role: Role): string =>
  `server.${id}=s${id}:${QUORUM_PORT}:${ELECTION_PORT}:${role};${CLIENT_PORT}`

/** What members are in the beginning. */
export function initialRoles({ servers, observers, nonMembers }: Plan): Map<number, Role> {
  const ids = Array.from({ length: servers }, (_, index) => index + 1).filter((id) => !nonMembers.includes(id))
  return new Map(ids.map((id) => [id, observers.includes(id) ? 'observer' : 'participant']))
}

/** The text of a configuration, without a version. */
export function membershipText(roles: ReadonlyMap<number, Role>, groups: GroupsPlan | undefined): string {
  const lines = [...roles].map(([id, role]) => memberLine(id, role))
  const votes = (id: number): boolean => roles.get(id) === 'participant'
  groups?.members.forEach((members, index) => {
    const voters = members.filter(votes)
    if (voters.length > 0) lines.push(`group.${index + 1}=${voters.join(':')}`)
    lines.push(...voters.map((id) => `weight.${id}=${groups.weights[id - 1]!}`))
  })
  return lines.join('\n')
}

/** What the operator writes down for a server: the members, and the server itself, without a voice unless it is one of them. */
export function configurationFor(
  id: number,
  roles: ReadonlyMap<number, Role>,
  groups: GroupsPlan | undefined,
): EnsembleConfiguration {
  return parseConfiguration(membershipText(new Map<number, Role>([[id, 'observer'], ...roles]), groups))
}

/** The settings of one server of a run. */
export function serverSettings(plan: Plan, id: number): ServerSettings {
  const { settings, servers, faults, nonMembers } = plan
  return defaults({
    ...(servers > 1
      ? {
          ensemble: configurationFor(id, initialRoles(plan), plan.groups),
          // Nobody lets in strangers without it.
          reconfigEnabled: nonMembers.length > 0 || faults.some(({ kind }) => MEMBERSHIP_CHANGES.has(kind)),
          initLimit: 10,
          syncLimit: SYNC_LIMIT,
          commitLogCount: settings.commitLogCount,
          truncateFromBytes: settings.truncateFromBytes,
          snapshotSizeFactor: settings.snapshotSizeFactor,
          observerMasterPort: plan.observerMasters === true ? OBSERVER_PORT : 0,
          readOnlyModeEnabled: plan.readOnly ?? false,
          localSessionsEnabled: settings.localSessions,
          localSessionsUpgradingEnabled: settings.localSessions,
        }
      : {}),
    superDigest: SUPER_USER.digest,
    dataDir: DATA_DIR,
    serverId: id,
    clientPort: CLIENT_PORT,
    tickTimeMs: settings.tickTimeMs,
    minSessionTimeoutMs: 1000,
    maxSessionTimeoutMs: 20_000,
    snapCount: Math.max(2, settings.snapCount),
    snapTreeShare: settings.snapTreeShare,
    preAllocSizeBytes: settings.preAllocSizeBytes,
    globalOutstandingLimit: settings.globalOutstandingLimit,
    extendedTypesEnabled: true,
    digestEnabled: true,
    enforceQuota: true,
    maxClientCnxns: 0,
    containerCheckIntervalMs: 2000,
    fourLetterWords: ['*'],
  })
}
