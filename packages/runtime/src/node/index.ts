import { silentLogger } from '../logger.ts'
import type { Platform } from '../platform.ts'
import { nodeClock, keepAliveNodeClock } from './clock.ts'
import { nodeCompression } from './compression.ts'
import { NodeDisk } from './disk.ts'
import { nodeNetwork } from './network.ts'
import { nodeRandom } from './random.ts'
import { nodeSystem } from './system.ts'
import { tlsNetwork } from './tls.ts'

export { nodeClock, nodeCompression, NodeDisk, nodeNetwork, nodeRandom, nodeSystem, keepAliveNodeClock }
export { gunzipSync, gzipSync } from './gzip.ts'
export { resolveSrv } from './srv.ts'
export { channel, tracingChannel } from './channels.ts'
export { httpUpgrades, type Upgrade, type UpgradeListener } from './http.ts'
export { tlsNetwork }
export { NodeTlsNetwork } from './tls.ts'

/** Returns the platform of this process. It logs nothing unless `logger` is given. */
export function nodePlatform(overrides: Partial<Platform> = {}): Platform {
  return {
    clock: nodeClock,
    random: nodeRandom,
    network: nodeNetwork,
    networkFactories: { tls: tlsNetwork },
    disk: new NodeDisk(),
    compression: nodeCompression,
    logger: silentLogger,
    system: nodeSystem,
    ...overrides,
  }
}
