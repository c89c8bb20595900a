import type { Clock } from './clock.ts'
import type { Compression } from './compression.ts'
import type { Disk } from './disk.ts'
import type { Logger } from './logger.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'
import type { TlsNetwork, TlsOptions, WebSocketLimits } from './secure.ts'
import type { System } from './system.ts'

/** Everything that a server needs of the world. */
export interface Ports {
  readonly clock: Clock
  readonly random: Random
  readonly network: Network
  /** Networks that need settings of their own. Who wants a listener of such a kind and lacks it is told so. */
  readonly networks?: Networks
  readonly disk: Disk
  readonly compression: Compression
  readonly logger: Logger
  readonly system: System
}

/** How to make networks that are made of certificates and limits. */
export interface Networks {
  readonly tls?: (options: TlsOptions) => TlsNetwork
  /** WebSockets, over TLS when it is given. */
  readonly webSocket?: (limits: WebSocketLimits, tls?: TlsNetwork) => Network
}
