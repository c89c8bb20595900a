import { silent } from '../logger.ts'
import type { Ports } from '../ports.ts'
import { nodeClock, wakefulNodeClock } from './clock.ts'
import { nodeCompression } from './compression.ts'
import { NodeDisk } from './disk.ts'
import { nodeNetwork } from './network.ts'
import { nodeRandom } from './random.ts'
import { nodeSystem } from './system.ts'
import { tlsNetwork } from './tls.ts'

export { nodeClock, nodeCompression, NodeDisk, nodeNetwork, nodeRandom, nodeSystem, wakefulNodeClock }
export { gunzipNow, gzipNow } from './gzip.ts'
export { nodeServices } from './services.ts'
export { channel, tracingChannel } from './channels.ts'
export { httpUpgrades, type Upgrade, type UpgradeListener } from './http.ts'
export { tlsNetwork }
export { NodeTlsNetwork } from './tls.ts'

/** The ports of this process. Logs nothing unless `logger` is given. */
export function nodePorts(overrides: Partial<Ports> = {}): Ports {
  return {
    clock: nodeClock,
    random: nodeRandom,
    network: nodeNetwork,
    networks: { tls: tlsNetwork },
    disk: new NodeDisk(),
    compression: nodeCompression,
    logger: silent,
    system: nodeSystem,
    ...overrides,
  }
}
