import {
  defaults,
  parseConfiguration,
  type EnsembleConfiguration,
  type ServerSettings,
} from '@zabra/server/core'
import { PASSWORDS } from '../history/acl.ts'
import type { Role } from './membership.ts'
import { initialRoles, membershipText, type GroupsPlan } from './membership-text.ts'
import { OBSERVER_PORT } from './observer-monitor.ts'
import { MEMBERSHIP_CHANGES } from './fault.ts'
import { SECURE_PORT } from './certificates.ts'
import type { Plan } from './plan.ts'
import { CLIENT_PORT } from '@zabra/testing'

export const DATA_DIR = '/data'
/** Where logs are in plans with a folder of their own for them. */
const LOG_DIR = '/logs'
/** The folders that may hold logs or snapshots. */
export const HISTORY_FOLDERS: readonly string[] = [DATA_DIR, LOG_DIR].map((folder) => `${folder}/version-2`)

/** What an oracle says to a server, outside of the data directory. */
export const ORACLE_FILE = '/oracle/answer'
/** The secret that all servers share where clients log in. */
export const SECRET_FILE = '/secret/sessions'
export const SECRET: Uint8Array = new TextEncoder().encode('s'.repeat(32))

/** `syncLimit` of all servers, in ticks. */
export const SYNC_LIMIT = 4

/** The operator's identity: the digest in the settings of servers, and the credentials. */
export const SUPER_USER = { digest: 'super:lK75jTNcA+U9vtVEw5vB51mj/w4=', credentials: 'super:secret' }

/**
 * Returns the configuration that the operator writes for a server: the members, and the server itself as an observer
 * unless it is one of them.
 */
export function configurationFor(
  id: number,
  roles: ReadonlyMap<number, Role>,
  groups: GroupsPlan | undefined,
): EnsembleConfiguration {
  return parseConfiguration(membershipText(new Map<number, Role>([[id, 'observer'], ...roles]), groups))
}

/** Returns whether operators send requests to servers over HTTP. */
export const usesHttp = ({ levels, faults }: Plan): boolean =>
  levels !== undefined || faults.some(({ kind }) => kind === 'transfer')

/** Returns whether servers have the secret of sessions from the start, so that all sessions are protected by it. */
export const sharesSecret = ({ logins, certificates }: Plan): boolean =>
  logins === true || certificates === true

/** The settings of a port with TLS. Its files are not read: the network is simulated. */
const SECURE = {
  secureClientPort: SECURE_PORT,
  sslClientAuth: 'want',
  sslKeyStoreLocation: '/tls/key.pem',
  sslTrustStoreLocation: '/tls/authority.pem',
} as const

/** Returns the settings of one server of a run. */
export function serverSettings(plan: Plan, id: number): ServerSettings {
  const { settings, servers, faults, nonMembers } = plan
  return defaults({
    ...(servers > 1
      ? {
          ensemble: configurationFor(id, initialRoles(plan), plan.groups),
          // Servers outside of the ensemble can only join by reconfig.
          reconfigEnabled: nonMembers.length > 0 || faults.some(({ kind }) => MEMBERSHIP_CHANGES.has(kind)),
          quorumJoinerHosts: Array.from({ length: servers }, (_, index) => `s${index + 1}`),
          initLimit: 10,
          syncLimit: SYNC_LIMIT,
          commitLogCount: settings.commitLogCount,
          truncateFromBytes: settings.truncateFromBytes,
          snapshotSizeFactor: settings.snapshotSizeFactor,
          observerMasterPort: plan.observerMasters === true ? OBSERVER_PORT : 0,
          readOnlyModeEnabled: plan.readOnly ?? false,
          maxUnsentBytes: settings.maxUnsentBytes,
          ...(plan.oracle === undefined ? {} : { oraclePath: ORACLE_FILE }),
          localSessionsEnabled: settings.localSessions,
          localSessionsUpgradingEnabled: settings.localSessions,
        }
      : {}),
    superDigest: SUPER_USER.digest,
    ...(usesHttp(plan) ? { adminRoleOperate: ['ip:127.0.0.1'] } : {}),
    ...(plan.logins === true ? { saslUsers: PASSWORDS } : {}),
    ...(plan.certificates === true ? SECURE : {}),
    ...(sharesSecret(plan) ? { sessionSecretFile: SECRET_FILE } : {}),
    dataDir: DATA_DIR,
    ...(plan.separateLogs === true ? { dataLogDir: LOG_DIR } : {}),
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
