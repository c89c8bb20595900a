import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import type { Notification } from './notification.ts'
import type { LeaderTerm, PeerState, Vote } from './vote.ts'

/** Options of an election, constant while a server runs. Times are in milliseconds. */
export interface ElectionOptions {
  readonly self: ServerId
  /** Time without messages after which the vote is sent again; doubles each time, up to `maxNotificationIntervalMs`. */
  readonly minNotificationIntervalMs: number
  readonly maxNotificationIntervalMs: number
  /** How long the election waits for a better vote once a quorum agrees. */
  readonly finalizeWaitMs: number
  /** Whether to adopt a newer configuration that another server sends (`reconfigEnabled`). */
  readonly adoptsConfigurations: boolean
  /** Whether an oracle is configured, which can allow one of two voters to lead alone (quorum-protocol 2.5). */
  readonly oracle: boolean
}

/** The defaults of Apache ZooKeeper. */
export const electionDefaults = {
  minNotificationIntervalMs: 200,
  maxNotificationIntervalMs: 60_000,
  finalizeWaitMs: 200,
  adoptsConfigurations: false,
  oracle: false,
} as const

/** The active and the last proposed configuration of a server. */
export interface Configurations {
  readonly active: EnsembleConfiguration
  /** The configuration seen last; ignored unless it is newer than the active one. */
  readonly proposed?: EnsembleConfiguration
}

/** What a server votes with. */
export interface ElectionState extends Configurations {
  /** The last transaction in its log; -1 when its data cannot be trusted. */
  readonly zxid: number
  /** Its currentEpoch. */
  readonly epoch: number
}

/**
 * A leader that a server does not join for `forMs` milliseconds, although it is established. Meanwhile the server joins another leader only
 * if a quorum follows that one.
 */
export interface AvoidedLeader {
  readonly leader: ServerId
  readonly forMs: number
}

/** `resend`: send the vote again. `finalize`: end the wait for a better vote. `avoid`: join the avoided leader again. */
export type ElectionTimer = 'resend' | 'finalize' | 'avoid'

/** Inputs of an election. */
export type ElectionInput =
  /**
   * The server has no role: start an election, also while one is running. Its leader `avoid` has refused it repeatedly: it does
   * not join that leader again for some time, and takes part in elections meanwhile. With the leader of the term `withoutVote` it has no
   * vote, so joining that leader does not help it to a quorum.
   */
  | {
      readonly type: 'look'
      readonly state: ElectionState
      readonly avoid?: AvoidedLeader
      readonly withoutVote?: LeaderTerm
    }
  | {
      readonly type: 'notification'
      readonly from: ServerId
      readonly notification: Notification
      /** Whether the sender has proved that it is `from`. */
      readonly isAuthenticated?: boolean
      /** Whether the sender runs Apache ZooKeeper, which joins no leader before a quorum follows that. */
      readonly isForeign?: boolean
    }
  /** A timer started by the work `start` has expired. */
  | { readonly type: 'timeout'; readonly timer: ElectionTimer }
  /** The election connection to a server has opened or closed. */
  | { readonly type: 'reachability'; readonly to: ServerId; readonly isReachable: boolean }
  /** The answer of the oracle has changed. */
  | { readonly type: 'oracle'; readonly canLeadAlone: boolean }
  /** The leader is established, or the learner is synced with it, in this epoch. */
  | { readonly type: 'established'; readonly epoch: number }
  /** A reconfig names the leader, so this server takes its role without an election. */
  | {
      readonly type: 'assigned'
      readonly state: Exclude<PeerState, 'looking'>
      readonly leader: ServerId
      /** The last transaction in the log of the leader; absent where the leader is another server. */
      readonly zxid?: number
    }
  /** The configurations have changed while the server has a role. */
  | { readonly type: 'configured'; readonly configurations: Configurations }

/** Work of an election that its host performs, in this order. */
export type ElectionWork =
  | {
      readonly do: 'send'
      readonly to: ServerId
      readonly state: PeerState
      readonly vote: Vote
      readonly configuration: string
    }
  /** Open the missing connections to these servers. */
  | { readonly do: 'connect'; readonly to: readonly ServerId[] }
  /** Start a timer; replaces a running timer of this name. */
  | { readonly do: 'start'; readonly timer: ElectionTimer; readonly afterMs: number }
  | { readonly do: 'stop'; readonly timer: ElectionTimer }
  /** The election is over: take this role. */
  | { readonly do: 'decide'; readonly state: Exclude<PeerState, 'looking'>; readonly vote: Vote }
  /** Activate a newer configuration. With `restart` the election is stopped until the next `look`. */
  | {
      readonly do: 'configure'
      readonly configuration: EnsembleConfiguration
      readonly from: ServerId
      readonly restart: boolean
    }
  | { readonly do: 'warn'; readonly context: object; readonly message: string }
