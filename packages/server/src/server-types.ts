import type { Address, Logger } from '@zabra/runtime'
import type { ServedPort } from './connections/listeners.ts'

/** A running server. */
export interface Server {
  /** Where clients connect: `clientPort`, or the first port that is served when there is none. */
  readonly addresses: { readonly client: Address }
  /** Every client port on which the server listens. */
  readonly listeners: readonly ServedPort[]
  /**
   * Resolves with the reason when the server has stopped because of a failure, or when its `close` could not store everything, and with
   * undefined after any other `close`. Never rejects.
   */
  readonly failed: Promise<unknown>
  /** The current role. */
  readonly role: 'standalone' | 'looking' | 'leading' | 'following' | 'observing' | 'read-only'
  /** The epoch of the history: that of the last leader with which the server was synced; on a standalone server that of its last transaction. */
  readonly epoch: number
  /** The id of the leader as far as this server knows; undefined while there is none, and on a standalone server. */
  readonly leader: number | undefined
  /** Whether clients are served now. */
  readonly serving: boolean
  /** Whether a client should be sent to this server now, as `/readyz` of the HTTP port says. */
  readonly ready: boolean
  /** Writes lines as the server does, with what it is at the moment. Its level is that of parts without one of their own. */
  readonly logger: Logger
  /** Returns a few metrics; `mntr` has all of them. */
  stats(): ServerMetrics
  /** Takes a snapshot while requests go on. Resolves when the snapshot is on disk; a failure is logged. */
  snapshot(): Promise<void>
  /** Reads the certificate files again, for new connections. A file that cannot be used is logged, and the old one stays in use. */
  reload(): Promise<void>
  /**
   * Starts to hand leadership over, as the four-letter command `ydld` does: accepted writes are committed, and a member that has all of
   * them takes over. Returns at once; false where this server does not lead, or the others are no quorum without it.
   */
  yieldLeadership(): boolean
  /** Stops: no new clients, accepted writes become durable and are answered, connections close. Sessions stay on disk. */
  close(): Promise<void>
}

/** The metrics that `Server.stats` returns. */
export interface ServerMetrics {
  /** The last transaction in memory or in the log. */
  readonly lastZxid: number
  readonly nodes: number
  readonly sessions: number
  readonly connections: number
  readonly watches: number
  /** Writes and syncs of clients that are accepted and not answered. */
  readonly outstanding: number
}
