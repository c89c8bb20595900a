import { defaults, type ServerSettings } from '@zabra/server'
import type { Plan } from './plan.ts'
import { CLIENT_PORT } from './server.ts'

export const DATA_DIR = '/data'

/** The settings of one server of a run. */
export function settingsFor({ knobs }: Plan, id: number): ServerSettings {
  return defaults({
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
