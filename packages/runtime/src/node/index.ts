import type { Clock } from '../clock.ts'
import type { Compression } from '../compression.ts'
import type { Disk } from '../disk.ts'
import { silent, type Logger } from '../logger.ts'
import type { Network } from '../network.ts'
import type { Random } from '../random.ts'
import { nodeClock } from './clock.ts'
import { nodeCompression } from './compression.ts'
import { NodeDisk } from './disk.ts'
import { nodeNetwork } from './network.ts'
import { nodeRandom } from './random.ts'
import { nodeSystem } from './system.ts'
import type { System } from '../system.ts'

export { nodeClock, nodeCompression, NodeDisk, nodeNetwork, nodeRandom, nodeSystem }

/** Everything that a server needs of the world. */
export interface NodePorts {
  readonly clock: Clock
  readonly random: Random
  readonly network: Network
  readonly disk: Disk
  readonly compression: Compression
  readonly logger: Logger
  readonly system: System
}

/** The ports of this process. Logs nothing unless `logger` is given. */
export function nodePorts(overrides: Partial<NodePorts> = {}): NodePorts {
  return {
    clock: nodeClock,
    random: nodeRandom,
    network: nodeNetwork,
    disk: new NodeDisk(),
    compression: nodeCompression,
    logger: silent,
    system: nodeSystem,
    ...overrides,
  }
}
