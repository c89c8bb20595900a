import type { Clock, Connection, Random } from '@zabra/runtime'

/** The address of a server. */
export interface ServerAddress {
  readonly scheme: 'tcp' | 'tls' | 'ws' | 'wss'
  readonly host: string
  readonly port: number
  /** The complete URL of a WebSocket server. */
  readonly url?: string | undefined
}

/** Opens connections to servers. Belongs to one client. */
export interface Transport {
  /** The supported schemes; absent means any. */
  readonly schemes?: readonly string[] | undefined
  /** Opens a connection to a server. Rejects when that fails, or when `signal` aborts. */
  open(server: ServerAddress, signal: AbortSignal): Promise<Connection>
  /** Asks whether a server is read-write or read-only. */
  probe?(server: ServerAddress, signal: AbortSignal): Promise<'rw' | 'ro' | 'unknown'>
}

/** Sources of time and randomness, which tests replace. */
export interface Platform {
  readonly clock: Clock
  readonly random: Random
  /**
   * Looks up the SRV records of a name, for servers given as `dns-srv://name`. Absent where the platform has no SRV
   * lookup.
   */
  readonly resolveSrv?:
    | ((name: string) => Promise<readonly { readonly host: string; readonly port: number }[]>)
    | undefined
}
