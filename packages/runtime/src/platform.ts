import type { Clock } from './clock.ts'
import type { Compression } from './compression.ts'
import type { Disk } from './disk.ts'
import type { Logger } from './logger.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'
import type { TlsNetwork, TlsOptions, WebSocketListenOptions } from './tls.ts'
import type { System } from './system.ts'

/** Everything that a server needs of the world. */
export interface Platform {
  readonly clock: Clock
  readonly random: Random
  readonly network: Network
  /** Networks that need settings of their own. Who wants a listener of such a kind and lacks it is told so. */
  readonly networkFactories?: NetworkFactories
  readonly disk: Disk
  readonly compression: Compression
  readonly logger: Logger
  readonly system: System
}

/** How to make networks that are made of certificates and limits. */
export interface NetworkFactories {
  readonly tls?: (options: TlsOptions) => TlsNetwork
  /** WebSockets, over TLS when it is given. */
  readonly webSocket?: (limits: WebSocketListenOptions, tls?: TlsNetwork) => Network
}
