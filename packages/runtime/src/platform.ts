import type { Clock } from './clock.ts'
import type { Compression } from './compression.ts'
import type { Cryptography } from './cryptography.ts'
import type { Disk } from './disk.ts'
import type { HttpServer } from './http.ts'
import type { Logger } from './logger.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'
import type { FileReads, TlsNetwork, TlsOptions, WebSocketListenOptions } from './tls.ts'
import type { System } from './system.ts'

/** The interfaces to the platform that a server needs. */
export interface Platform {
  readonly clock: Clock
  readonly random: Random
  readonly network: Network
  /** Factories of networks with options of their own. A server without the factory that a listener needs refuses to start. */
  readonly networkFactories?: NetworkFactories | undefined
  readonly disk: Disk
  readonly compression: Compression
  /** A server without it refuses to start where it is configured to write backups. */
  readonly cryptography?: Cryptography
  readonly logger: Logger
  readonly system: System
}

/** Creates networks from certificates and limits. */
export interface NetworkFactories {
  readonly tls?: ((options: TlsOptions, reads?: FileReads) => TlsNetwork) | undefined
  /** Creates an HTTP server, over TLS when `tls` is given; `isMixed` accepts both on one port. */
  readonly http?: (options: {
    readonly tls?: TlsNetwork | undefined
    readonly isMixed?: boolean | undefined
  }) => HttpServer
  /** Creates a network of WebSockets, over TLS when `tls` is given. */
  readonly webSocket?: (limits: WebSocketListenOptions, tls?: TlsNetwork) => Network
}
