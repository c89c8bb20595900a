import { silentLogger } from '../logger.ts'
import type { HttpServer } from '../http.ts'
import type { NetworkFactories, Platform } from '../platform.ts'
import { nodeClock, keepAliveNodeClock } from './clock.ts'
import { nodeCompression } from './compression.ts'
import { nodeCryptography } from './cryptography.ts'
import { NodeDisk } from './disk.ts'
import { nodeHttpServer } from './http-server.ts'
import { nodeNetwork } from './network.ts'
import { nodeRandom } from './random.ts'
import { nodeSystem } from './system.ts'
import { NodeTlsNetwork, tlsNetwork } from './tls.ts'

export { nodeClock, nodeCompression, NodeDisk, nodeNetwork, nodeRandom, nodeSystem, keepAliveNodeClock }
export { nodeCryptography }
export { gunzipSync, gzipSync } from './gzip.ts'
export { resolveSrv } from './srv.ts'
export { channel, tracingChannel } from './channels.ts'
export { httpUpgrades, type Upgrade, type UpgradeListener } from './http.ts'
export { http as httpServer, tlsNetwork }
export { NodeTlsNetwork } from './tls.ts'

function http({ tls, isMixed = false }: Parameters<NonNullable<NetworkFactories['http']>>[0]): HttpServer {
  return nodeHttpServer({ tls: tls instanceof NodeTlsNetwork ? tls : undefined, isMixed })
}

/** Returns the platform of this process. It logs nothing unless `logger` is given. */
export function nodePlatform(overrides: Partial<Platform> = {}): Platform {
  return {
    clock: nodeClock,
    random: nodeRandom,
    network: nodeNetwork,
    networkFactories: { tls: tlsNetwork },
    disk: new NodeDisk(),
    compression: nodeCompression,
    cryptography: nodeCryptography,
    logger: silentLogger,
    system: nodeSystem,
    ...overrides,
  }
}
