import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import type { Notification } from './notification.ts'
import type { PeerState, Vote } from './vote.ts'

/** What stays the same as long as a server runs. Times are in milliseconds. */
export interface ElectionOptions {
  readonly self: ServerId
  /** Silence after which votes are sent again; doubles each time, up to `maxResendMs`. */
  readonly minNotificationIntervalMs: number
  readonly maxNotificationIntervalMs: number
  /** How long a better vote may still come once there is a quorum. */
  readonly finalizeWaitMs: number
  /** Whether a newer configuration that another server tells of is taken (`reconfigEnabled`). */
  readonly adoptsConfigurations: boolean
  /** Whether one of two voters may go on alone when an oracle says so. */
  readonly oracle: boolean
}

/** What Apache ZooKeeper has. */
export const electionDefaults = {
  minNotificationIntervalMs: 200,
  maxNotificationIntervalMs: 60_000,
  finalizeWaitMs: 200,
  adoptsConfigurations: false,
  oracle: false,
} as const

/** The configurations that a server knows of. */
export interface Configurations {
  /** In force. */
  readonly active: EnsembleConfiguration
  /** Seen last; matters while it is newer. */
  readonly proposed?: EnsembleConfiguration
}

/** What a server brings to an election. */
export interface ElectionState extends Configurations {
  /** The last transaction in its log; -1 when its data is not to be trusted. */
  readonly zxid: number
  /** Its current epoch. */
  readonly epoch: number
}

export type ElectionTimer = 'resend' | 'settle'

/** What happens to an election. */
export type ElectionInput =
  /** The server has no role: it looks for a leader, again if it looked already. */
  | { readonly type: 'look'; readonly footing: ElectionState }
  | { readonly type: 'heard'; readonly from: ServerId; readonly notification: Notification }
  /** A timer that was asked for has run out. */
  | { readonly type: 'timeout'; readonly timer: ElectionTimer }
  /** A connection to a server has come about, or has broken. */
  | { readonly type: 'reach'; readonly to: ServerId; readonly reachable: boolean }
  /** The oracle was asked: may one server go on alone? */
  | { readonly type: 'oracle'; readonly goOn: boolean }
  /** The role is filled: the leader is established, or the learner is in step with it, in this epoch. */
  | { readonly type: 'installed'; readonly epoch: number }
  /** A change of the configuration says who leads, and makes this server go there without an election. */
  | { readonly type: 'assigned'; readonly state: Exclude<PeerState, 'looking'>; readonly leader: ServerId }
  /** The configurations have changed while the server has a role. */
  | { readonly type: 'configured'; readonly configurations: Configurations }

/** What its host is to do, in this order. */
export type ElectionWork =
  | {
      readonly do: 'send'
      readonly to: ServerId
      readonly state: PeerState
      readonly vote: Vote
      readonly configuration: string
    }
  /** See that there are connections to these. */
  | { readonly do: 'connect'; readonly to: readonly ServerId[] }
  /** Start a timer, in place of one of this name that runs. */
  | { readonly do: 'start'; readonly timer: ElectionTimer; readonly afterMs: number }
  | { readonly do: 'stop'; readonly timer: ElectionTimer }
  /** The election is over: take this role. */
  | { readonly do: 'decide'; readonly state: Exclude<PeerState, 'looking'>; readonly vote: Vote }
  /** Bring a newer configuration into force. With `restart` the election waits for `look` on the new footing. */
  | {
      readonly do: 'configure'
      readonly configuration: EnsembleConfiguration
      readonly from: ServerId
      readonly restart: boolean
    }
  | { readonly do: 'warn'; readonly facts: object; readonly sentence: string }
