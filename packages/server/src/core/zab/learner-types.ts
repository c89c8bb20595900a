import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { QuorumPacket } from './packets.ts'

/** What a learner is made with. Times are in ticks. */
export interface LearnerOptions {
  readonly self: ServerId
  /** A participant follows, also one that the configuration does not name yet; an observer is told of what is committed. */
  readonly observer: boolean
  /** What is on disk. */
  readonly acceptedEpoch: number
  readonly currentEpoch: number
  /** The last transaction of the log, or of the snapshot; -1 when the data is not to be trusted. */
  readonly lastZxid: Zxid
  /** The tree was found to be wrong, and a leader is to send all of it anew. What is on disk counts until that is there. */
  readonly needsFullSync?: boolean
  /** The version of the configuration in force. */
  readonly configVersion: number
  /** How long the leader may be silent until NEWLEADER, and after it. */
  readonly initLimit: number
  readonly syncLimit: number
}

/**
 * What the hot path calls. It goes behind all work on the disk that came before it and is not done. The log is written in the order
 * of `append`; when it is durable the host says so to `Learner.markDurable`.
 */
export interface Replica {
  /** Log a transaction, byte for byte. */
  append(zxid: Zxid, payload: Uint8Array): void
  /** It is committed: apply it, which may be before the log is durable. */
  commit(zxid: Zxid, payload: Uint8Array): void
  /** Send ACK. */
  ack(zxid: Zxid): void
}

/** `synchronisation`: history comes in. `waiting`: it is here, and the leader waits for others. `broadcast`: in step. */
export type LearnerPhase = 'connecting' | 'discovery' | 'synchronisation' | 'waiting' | 'broadcast' | 'over'

export type LearnerInput =
  /** The connection to the leader stands. First of all. */
  | { readonly type: 'connected' }
  | { readonly type: 'closed' }
  /** The epoch that `store` asked for is durable. */
  | { readonly type: 'stored'; readonly what: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  /** The log was cut. `lastZxid` is what is there now. */
  | { readonly type: 'truncated'; readonly lastZxid: Zxid }
  /** All that `harden` asked for is durable. */
  | { readonly type: 'hardened' }
  /** The snapshot that came in is not one, or the tree's digest is not that of a transaction: the data is not to be trusted. */
  | { readonly type: 'diverged'; readonly zxid: Zxid; readonly reason: string }
  | { readonly type: 'halfTick' }

/**
 * What the host is to do. Work on the disk (`discard`, `truncate`, `install`, `append`, `commit`, `harden`,
 * `store`, `proposeConfiguration`) is done one after the other in this order, each when the one before it is done; packets may be handed in meanwhile.
 */
export type LearnerWork =
  | { readonly do: 'send'; readonly packet: QuorumPacket }
  | { readonly do: 'store'; readonly what: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  /** Cut history to what is not after this zxid, in the log, in snapshots and in the tree, then hand in `truncated`. */
  | { readonly do: 'truncate'; readonly to: Zxid }
  /**
   * Bytes of a snapshot follow this packet on the wire. They take the place of all data as of this zxid, and older files
   * leave the data directory once the new snapshot is durable. When it is not what it should be, hand in `diverged`.
   */
  | { readonly do: 'install'; readonly zxid: Zxid }
  /** Log and apply. Nobody can see it before `serve`. */
  | { readonly do: 'append'; readonly zxid: Zxid; readonly payload: Uint8Array }
  | { readonly do: 'commit'; readonly zxid: Zxid; readonly payload: Uint8Array }
  /** Make all of the above durable, snapshot and log, then hand in `hardened`. */
  | { readonly do: 'harden' }
  /** A configuration was seen that is not in force yet: keep it as the last one seen (`.next`), connect to who is new. */
  | { readonly do: 'proposeConfiguration'; readonly configuration: EnsembleConfiguration }
  /**
   * Bring a configuration into force when it is newer (14.5). A change of this server's role, or of who leads, ends this
   * role: that is the host's to find out.
   */
  | {
      readonly do: 'activate'
      readonly configuration: EnsembleConfiguration
      readonly designated?: ServerId
      readonly zxid?: Zxid
    }
  /** In step with an established leader: serve clients. */
  | { readonly do: 'serve'; readonly epoch: number }
  /** Answer a PING: same zxid, and the sessions heard of since the last one. */
  | { readonly do: 'pong'; readonly zxid: Zxid }
  /** SYNC or REVALIDATE, for the client side. */
  | { readonly do: 'deliver'; readonly packet: QuorumPacket }
  /**
   * The tree is not to be trusted: learners are made with `asksForAll`, or with a `lastZxid` of -1 where the files are no better,
   * until the next `harden` is done. Comes before `leave`.
   */
  | { readonly do: 'discard'; readonly reason: string }
  /**
   * The role is over: close the connection, settle the log, look for a leader, or come back to this one where it says `again`.
   * Nothing comes after it.
   */
  | { readonly do: 'leave'; readonly reason: string; readonly again?: true }
  | { readonly do: 'warn'; readonly facts: object; readonly sentence: string }
