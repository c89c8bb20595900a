import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { QuorumPacket } from './packets.ts'
import type { SyncPlan, SyncSources } from './sync-plan.ts'

/** A number that the host assigns to each connection on the quorum port; unique within a leadership. */
export type ConnectionId = number

/** Options of a leader. Times are in ticks. */
export interface LeaderOptions {
  readonly self: ServerId
  /** The active configuration. */
  readonly active: EnsembleConfiguration
  /** The configuration seen last; ignored unless it is newer than the active one. */
  readonly proposed?: EnsembleConfiguration
  /** The acceptedEpoch on disk. */
  readonly acceptedEpoch: number
  /** The currentEpoch on disk. */
  readonly currentEpoch: number
  /** The last transaction of the log. The whole log is durable and applied to the tree. */
  readonly lastZxid: Zxid
  /** Limit for choosing the epoch, for its acceptance, and for the ACKs of NEWLEADER, each. */
  readonly initLimit: number
  /** How long a learner may be silent, or leave a proposal unacknowledged. */
  readonly syncLimit: number
  /** Sources to synchronise learners from. The leader adds to `sources.window` what it commits. */
  readonly sources: SyncSources
  readonly reconfigEnabled: boolean
  /** Largest number of learners; default 1000. */
  readonly maxLearners?: number
  /**
   * Largest number of connections without FOLLOWERINFO or OBSERVERINFO; the oldest is dropped for a new one; default 100.
   */
  readonly maxUnidentified?: number
  /** Whether an oracle is configured, which can allow one of two voters to lead alone (quorum-protocol 2.5). */
  readonly oracle?: boolean
  /** The last counter of an epoch, lower in tests; default 0xfffffffe. */
  readonly maxCounter?: number
}

/**
 * `discovery`: agrees on an epoch. `synchronisation`: sends its history to a quorum. `broadcast`: is established. `over`: has
 * stepped down.
 */
export type LeaderPhase = 'discovery' | 'synchronisation' | 'broadcast' | 'over'

/** Inputs of a leader, apart from those of every write. */
export type LeaderInput =
  /** The first input. */
  | { readonly type: 'start' }
  /** A connection was accepted on the quorum port. `isAuthenticated`: the other side has proved which server it is. */
  | { readonly type: 'accepted'; readonly from: ConnectionId; readonly isAuthenticated?: boolean }
  /** A packet was received. Its data must not change afterwards. */
  | { readonly type: 'packet'; readonly from: ConnectionId; readonly packet: QuorumPacket }
  | { readonly type: 'closed'; readonly from: ConnectionId }
  /** All data of the work `sync` was sent. */
  | { readonly type: 'streamed'; readonly to: ConnectionId }
  /** The epoch of the work `store` is durable. */
  | { readonly type: 'stored'; readonly what: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  /** Half a tick has passed. */
  | { readonly type: 'halfTick' }
  /** Confirm with the work `confirmLeadership` that a quorum still follows. `id` must be larger than in earlier checks. */
  | { readonly type: 'checkLeadership'; readonly id: number }
  /** The answer of the oracle has changed. */
  | { readonly type: 'oracle'; readonly canLeadAlone: boolean }
  /**
   * Transfer the leadership: accept no proposals, and step down when all earlier ones are committed and a voter has all of
   * them; after `syncLimit` ticks without such a voter, continue to lead. No accepted write is lost, and a synced follower can
   * take over. The others elect their leader freely: among voters with the same history that is the highest id, which is the
   * named successor if this server keeps out of that election. With `to`, leadership goes to that voter, or stays.
   */
  | { readonly type: 'transfer'; readonly to?: ChosenSuccessor }
  /** Accept no proposal any more. The host ends the role afterwards. */
  | { readonly type: 'suspend' }

/**
 * The voter that is to lead next. It alone gets one more transaction, the last one of the epoch, so that its history is the longest and
 * all others vote for it (quorum-protocol 18.11).
 */
export interface ChosenSuccessor {
  readonly server: ServerId
  /** A transaction that changes nothing, with the zxid after `lastProposed`. This server does not log it. */
  readonly payload: Uint8Array
}

/** Why a leader steps down. */
export interface StepDownReason {
  readonly message: string
  /** The leader designated by a reconfig: follow it without an election (quorum-protocol 14.5). */
  readonly designated?: ServerId
  /**
   * The voter that is likely to be elected after a leadership transfer. Keep out of the election until there is another
   * leader, or as long as an election may take, or else this server may win it again.
   */
  readonly successor?: ServerId
}

/**
 * Work of a leader. The host performs it in this order, before any work of a later input. Completions come back as inputs.
 * Lists of connections do not change.
 */
export type LeaderWork =
  | { readonly do: 'send'; readonly to: ConnectionId; readonly packet: QuorumPacket }
  /** Synchronise a learner. All later packets to it are sent after this data, however long it takes. */
  | { readonly do: 'sync'; readonly to: ConnectionId; readonly plan: SyncPlan }
  | { readonly do: 'drop'; readonly connection: ConnectionId; readonly reason: string }
  /** Make an epoch durable, then input `stored`. */
  | { readonly do: 'store'; readonly what: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  /** Keep a configuration that is not active yet as the one seen last (`.next`). */
  | { readonly do: 'proposeConfiguration'; readonly configuration: EnsembleConfiguration }
  /** Activate a configuration that was seen but not committed before this leader was elected (quorum-protocol 14.6). */
  | { readonly do: 'activate'; readonly configuration: EnsembleConfiguration; readonly designated: ServerId }
  /** The leader is established: accept requests. The first proposal has the zxid `zxid` + 1. */
  | { readonly do: 'lead'; readonly epoch: number; readonly zxid: Zxid }
  /** Send PROPOSAL to these followers. The caller of `propose` writes the leader's own log. */
  | {
      readonly do: 'propose'
      readonly zxid: Zxid
      readonly payload: Uint8Array
      readonly followers: readonly ConnectionId[]
    }
  /**
   * Send COMMIT to followers and INFORM to observers of each transaction from the zxid `first` on, and apply them. In zxid order,
   * without gaps.
   */
  | {
      readonly do: 'commit'
      readonly first: Zxid
      readonly payloads: readonly Uint8Array[]
      readonly followers: readonly ConnectionId[]
      readonly observers: readonly ConnectionId[]
    }
  /**
   * As `commit`, for one transaction, a reconfig: send COMMITANDACTIVATE and INFORMANDACTIVATE, apply the transaction and activate the
   * configuration. When `designated` is another server, this one commits nothing more, and `stepDown` follows soon.
   */
  | {
      readonly do: 'commitReconfig'
      readonly zxid: Zxid
      readonly payload: Uint8Array
      readonly followers: readonly ConnectionId[]
      readonly observers: readonly ConnectionId[]
      readonly configuration: EnsembleConfiguration
      readonly designated: ServerId
    }
  /**
   * This server was still the leader at some time after the input `checkLeadership` with this id, and all that was proposed
   * before that input is committed. In the order of the ids.
   */
  | { readonly do: 'confirmLeadership'; readonly id: number }
  /** Process a REQUEST, a REVALIDATE or the sessions of a PING. `server` is the sender. */
  | {
      readonly do: 'deliver'
      readonly from: ConnectionId
      readonly server: ServerId
      readonly packet: QuorumPacket
    }
  /** Proposals and commits are sent to this learner from now on, or no longer. */
  | {
      readonly do: 'learnerJoined'
      readonly connection: ConnectionId
      readonly server: ServerId
      readonly isObserver: boolean
    }
  | { readonly do: 'learnerLeft'; readonly connection: ConnectionId; readonly server: ServerId }
  /** The leadership is over: close all connections, recover the log, look for a leader. The last work. */
  | { readonly do: 'stepDown'; readonly reason: StepDownReason }
  | { readonly do: 'warn'; readonly context: object; readonly message: string }
