import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { QuorumPacket } from './packets.ts'

/** Options of a learner. Times are in ticks. */
export interface LearnerOptions {
  readonly self: ServerId
  /**
   * A participant follows, even if the configuration does not contain it yet; an observer receives committed transactions
   * only.
   */
  readonly observer: boolean
  /**
   * The epoch of an established leader that this voter follows as an observer, without a vote, since it has accepted a later
   * epoch (quorum-protocol 8.3). Requires `observer`.
   */
  readonly nonVotingEpoch?: number
  /** The acceptedEpoch on disk. */
  readonly acceptedEpoch: number
  /** The currentEpoch on disk. */
  readonly currentEpoch: number
  /** The last transaction of the log or the snapshot; -1 when the data cannot be trusted. */
  readonly lastZxid: Zxid
  /**
   * Whether the tree is known to be wrong, so that the leader must send a snapshot. Until then the data on disk still
   * counts.
   */
  readonly needsFullSync?: boolean
  /** Version of the active configuration. */
  readonly configVersion: number
  /** How long the leader may be silent before UPTODATE. */
  readonly initLimit: number
  /** How long the leader may be silent after UPTODATE. */
  readonly syncLimit: number
}

/**
 * `connecting`: not connected. `discovery`: agrees on the epoch. `synchronisation`: receives history. `waiting`: has received
 * NEWLEADER, and waits for UPTODATE. `broadcast`: is synced. `over`: has left the leader.
 */
export type LearnerPhase = 'connecting' | 'discovery' | 'synchronisation' | 'waiting' | 'broadcast' | 'over'

/** Inputs of a learner, apart from packets. */
export type LearnerInput =
  /** The connection to the leader is open. The first input. */
  | { readonly type: 'connected' }
  | { readonly type: 'closed' }
  /** The epoch of the work `store` is durable. */
  | { readonly type: 'stored'; readonly what: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  /** The work `truncate` is done. `lastZxid` is the last transaction left. */
  | { readonly type: 'truncated'; readonly lastZxid: Zxid }
  /** The work `flush` is done. */
  | { readonly type: 'flushed' }
  /** The received snapshot is invalid, or the digest of the tree is wrong: the data cannot be trusted. */
  | { readonly type: 'diverged'; readonly zxid: Zxid; readonly reason: string }
  /** Half a tick has passed. */
  | { readonly type: 'halfTick' }

/**
 * Work of a learner. The host performs it in this order; work on the disk waits for that before it, while further packets may
 * already be received. Completions come back as inputs.
 */
export type LearnerWork =
  | { readonly do: 'send'; readonly packet: QuorumPacket }
  /** Make an epoch durable, then input `stored`. */
  | { readonly do: 'store'; readonly what: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  /** Remove all transactions after this zxid from the log, the snapshots and the tree, then input `truncated`. */
  | { readonly do: 'truncate'; readonly to: Zxid }
  /**
   * Receive the snapshot that follows this packet in the stream. It replaces all data as of this zxid; older files are removed
   * from the data directory once it is durable. If it is invalid, input `diverged`.
   */
  | { readonly do: 'installSnapshot'; readonly zxid: Zxid }
  /** Append transactions with the zxids from `first` on to the log, byte for byte. Call `markDurable` when they are durable. */
  | { readonly do: 'append'; readonly first: Zxid; readonly payloads: Uint8Array[] }
  /** Apply committed transactions, even before the log is durable. Clients cannot see them before `serve`. */
  | { readonly do: 'commit'; readonly first: Zxid; readonly payloads: Uint8Array[] }
  /** Send an ACK for each zxid from `first` to `last`. */
  | { readonly do: 'ack'; readonly first: Zxid; readonly last: Zxid }
  /** Make all of the above durable, snapshot and log, then input `flushed`. */
  | { readonly do: 'flush' }
  /** Keep a configuration that is not active yet as the one seen last (`.next`), and connect to its new members. */
  | { readonly do: 'proposeConfiguration'; readonly configuration: EnsembleConfiguration }
  /**
   * Activate a configuration if it is newer (quorum-protocol 14.5). The host decides whether a change of its role or of the
   * leader ends this role.
   */
  | {
      readonly do: 'activate'
      readonly configuration: EnsembleConfiguration
      readonly designated?: ServerId
      readonly zxid?: Zxid
    }
  /** The learner is synced with an established leader: serve clients. */
  | { readonly do: 'serve'; readonly epoch: number }
  /** Answer a PING with the same zxid and the sessions that were active since the last one. */
  | { readonly do: 'answerPing'; readonly zxid: Zxid }
  /** Process a SYNC or REVALIDATE for the clients. */
  | { readonly do: 'deliver'; readonly packet: QuorumPacket }
  /**
   * The tree cannot be trusted: construct learners with `needsFullSync`, or with a `lastZxid` of -1 if the files cannot be
   * trusted either, until the next `flush` is done. Followed by `leave`.
   */
  | { readonly do: 'requestFullSync'; readonly reason: string }
  /**
   * The role is over: close the connection, recover the log, and look for a leader, or connect to the same one again if
   * `reconnect` is set. `earlierEpoch` is the epoch of a leader that this voter can only follow without a vote. The last work.
   */
  | {
      readonly do: 'leave'
      readonly reason: string
      readonly reconnect?: true
      readonly earlierEpoch?: number
    }
  | { readonly do: 'warn'; readonly context: object; readonly message: string }
