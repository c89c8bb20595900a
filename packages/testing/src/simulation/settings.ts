import { defaults, parseConfiguration, type EnsembleConfiguration, type ServerSettings } from '@zabra/server'
import type { Plan } from './plan.ts'
import { CLIENT_PORT } from './server.ts'

export const DATA_DIR = '/data'

const QUORUM_PORT = 2888
const ELECTION_PORT = 3888

/** The members `s1` to `sN`, all of them participants. */
function ensembleOf(servers: number): EnsembleConfiguration {
  const lines = Array.from(
    { length: servers },
    (_, index) => `server.${index + 1}=s${index + 1}:${QUORUM_PORT}:${ELECTION_PORT}:participant`,
  )
  return parseConfiguration(lines.join('\n'))
}

/** The settings of one server of a run. */
export function settingsFor({ knobs, servers }: Plan, id: number): ServerSettings {
  return defaults({
    ...(servers > 1
      ? {
          ensemble: ensembleOf(servers),
          initLimit: 10,
          syncLimit: 4,
          commitLogCount: knobs.commitLogCount,
          truncateFromBytes: knobs.truncateFromBytes,
          snapshotSizeFactor: knobs.snapshotSizeFactor,
        }
      : {}),
    dataDir: DATA_DIR,
    serverId: id,
    clientPort: CLIENT_PORT,
    tickTimeMs: knobs.tickTimeMs,
    minSessionTimeoutMs: 1000,
    maxSessionTimeoutMs: 20_000,
    snapCount: Math.max(2, knobs.snapCount),
    preAllocSizeBytes: knobs.preAllocSizeBytes,
    globalOutstandingLimit: knobs.globalOutstandingLimit,
    extendedTypesEnabled: true,
    digestEnabled: true,
    maxClientCnxns: 0,
    containerCheckIntervalMs: 2000,
    fourLetterWords: ['*'],
  })
}
