import type { Clock } from './clock.ts'
import type { Compression } from './compression.ts'
import type { Disk } from './disk.ts'
import type { Logger } from './logger.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'
import type { System } from './system.ts'

/** Everything that a server needs of the world. */
export interface Ports {
  readonly clock: Clock
  readonly random: Random
  readonly network: Network
  readonly disk: Disk
  readonly compression: Compression
  readonly logger: Logger
  readonly system: System
}
