import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { QuorumPacket } from './packets.ts'
import type { SyncPlan, SyncSources } from './sync-plan.ts'

/** A number that the host gives to each connection on the quorum port. Never used twice in a term. */
export type ConnectionId = number

/** What a leader is made with. Times are in ticks. */
export interface LeaderOptions {
  readonly self: ServerId
  /** In force. */
  readonly active: EnsembleConfiguration
  /** Seen last; matters while it is newer than the active one. */
  readonly proposed?: EnsembleConfiguration
  /** What is on disk. */
  readonly acceptedEpoch: number
  readonly currentEpoch: number
  /** The last transaction of the log, all of which is durable and applied to the tree. */
  readonly lastZxid: Zxid
  /** How long discovery, the acks of epochs and those of NEWLEADER may take, each. */
  readonly initLimit: number
  /** How long a learner may be silent, or leave a proposal unacknowledged. */
  readonly syncLimit: number
  /** Where learners are brought up to date from. The leader adds to `sources.window` what it commits. */
  readonly sources: SyncSources
  readonly reconfigEnabled: boolean
  /** Most learners at a time; default 1000. */
  readonly maxLearners?: number
  /** Most connections that have not said who they are; the oldest gives way to a new one; default 100. */
  readonly maxUnidentified?: number
  /** Whether one of two voters may go on alone when an oracle says so. */
  readonly oracle?: boolean
  /** The last counter of an epoch, lower in tests; default 0xfffffffe. */
  readonly maxCounter?: number
}

/**
 * What the hot path calls, also from within `step`, before the work that this returns is done: for a learner that takes its place
 * at that moment COMMIT may so come before UPTODATE, which it must expect anyway. The arrays belong to the leader; do not keep
 * them.
 */
export interface Broadcast {
  /** Send PROPOSAL to these. The leader's own log is the caller's of `propose` to write. */
  proposal(zxid: Zxid, payload: Uint8Array, followers: readonly ConnectionId[]): void
  /** Send COMMIT to followers and INFORM to observers, and apply the transaction here. In order of zxid, without gaps. */
  commit(
    zxid: Zxid,
    payload: Uint8Array,
    followers: readonly ConnectionId[],
    observers: readonly ConnectionId[],
  ): void
  /**
   * Takes the place of `commit` for a change of the configuration: send COMMITANDACTIVATE and INFORMANDACTIVATE, apply, and
   * bring the configuration into force. When `designated` is another server, this one commits nothing more and `stop`
   * comes soon.
   */
  activate(
    zxid: Zxid,
    payload: Uint8Array,
    followers: readonly ConnectionId[],
    observers: readonly ConnectionId[],
    configuration: EnsembleConfiguration,
    designated: ServerId,
  ): void
  /**
   * This leader was still the one, and all that was proposed before is committed, at some time after `confirm` was asked with
   * this ticket. Comes in order of tickets, after the `commit` calls on which it waited.
   */
  confirmed(ticket: number): void
}

export type LeaderPhase = 'discovery' | 'synchronisation' | 'broadcast' | 'over'

export type LeaderInput =
  /** First of all. */
  | { readonly type: 'start' }
  | { readonly type: 'accepted'; readonly from: ConnectionId }
  /** Data of the packet must not change afterwards. ACKs may go to `ack` directly. */
  | { readonly type: 'packet'; readonly from: ConnectionId; readonly packet: QuorumPacket }
  | { readonly type: 'closed'; readonly from: ConnectionId }
  /** What a `sync` asked for has been handed over in full. */
  | { readonly type: 'streamed'; readonly to: ConnectionId }
  /** The epoch that `store` asked for is durable. */
  | { readonly type: 'stored'; readonly what: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  /** Half a tick has gone by. */
  | { readonly type: 'halfTick' }
  /** Answer `Broadcast.confirmed` with this number, larger than the ones before, when a quorum stands behind this leader. */
  | { readonly type: 'confirm'; readonly ticket: number }
  /** What the oracle says, each time that it changes. */
  | { readonly type: 'oracle'; readonly goOn: boolean }
  /**
   * Hand leadership over: no new proposals, and once all earlier ones are committed and a voter has all of them, leave; all
   * within `syncLimit` ticks or not at all. Nothing accepted is lost, and a follower is up to date to take over at once. Whom
   * the others elect is theirs: among those with the same history it is the highest id, which is the successor that is
   * named, provided that this server keeps out of that election.
   */
  | { readonly type: 'transfer' }

/** Why a leadership ended. */
export interface StepDownReason {
  readonly reason: string
  /** A change of the configuration made this server the leader: go to it without an election (14.5). */
  readonly designated?: ServerId
  /**
   * Leadership was handed over. Keep out of the election until another leader is heard of, or for as long as an election
   * may take, or this server may win it again. The one named is whom the order of votes favours.
   */
  readonly successor?: ServerId
}

/** What the host is to do, in this order, before it hands in the next input. What has to wait comes back as an input. */
export type LeaderWork =
  | { readonly do: 'send'; readonly to: ConnectionId; readonly packet: QuorumPacket }
  /** Send what brings a learner up to date. Whatever is sent to it later goes behind, as long as this may take. */
  | { readonly do: 'sync'; readonly to: ConnectionId; readonly plan: SyncPlan }
  | { readonly do: 'drop'; readonly connection: ConnectionId; readonly reason: string }
  /** Make an epoch durable, then hand in `stored`. Also when `stop` comes right after it. */
  | { readonly do: 'store'; readonly what: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  /** A configuration was seen that is not in force yet: keep it as the last one seen (`.next`). */
  | { readonly do: 'proposeConfiguration'; readonly configuration: EnsembleConfiguration }
  /** Bring a configuration into force, found unfinished at the start. */
  | { readonly do: 'activate'; readonly configuration: EnsembleConfiguration; readonly designated: ServerId }
  /** A quorum is in step: take requests. The first proposal is `zxid` + 1. */
  | { readonly do: 'lead'; readonly epoch: number; readonly zxid: Zxid }
  /** REQUEST, REVALIDATE or the sessions of a PING, for the client side. `server` is who sent it. */
  | {
      readonly do: 'deliver'
      readonly from: ConnectionId
      readonly server: ServerId
      readonly packet: QuorumPacket
    }
  /** A learner's connection is now part of the broadcast, or no longer. For figures and for sessions' owners. */
  | {
      readonly do: 'joined'
      readonly connection: ConnectionId
      readonly server: ServerId
      readonly observer: boolean
    }
  | { readonly do: 'left'; readonly connection: ConnectionId; readonly server: ServerId }
  /** Leadership is over: close everything, settle the log, look for a leader. Nothing comes after it. */
  | { readonly do: 'stop'; readonly because: StepDownReason }
  | { readonly do: 'warn'; readonly facts: object; readonly sentence: string }
