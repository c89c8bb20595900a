/** The metrics of a role for four-letter commands. The role computes them when a command reads them. */
export interface RoleMetrics {
  readonly mode: 'standalone' | 'leader' | 'follower' | 'observer' | 'read-only'
  /** Present on members of an ensemble. */
  readonly member?: MemberMetrics
}

export interface MemberMetrics {
  /** State and phase, such as `leading - broadcast`, `following - synchronization`, `observing - broadcast`. */
  readonly peerState: string
  /** Voters of the active configuration. */
  readonly quorumSize: number
  readonly conf: MemberConf
  /** Present on the leader. */
  readonly leader?: LeaderMetrics
  /** The id of the server that an observer follows. */
  readonly observerMasterId?: number
  /** The synced observers of a leader, and of a follower that serves observers. */
  readonly observers?: readonly ObserverReport[]
  /** Metrics that Apache ZooKeeper lacks, without the `zk_` before their keys. */
  readonly extraMetrics?: readonly (readonly [key: string, value: string | number])[]
  /** Hands leadership over (`ydld`). Returns the answer, without a newline. */
  yieldLeadership(): string
  /** Requests leadership (`rqld`). Returns the answer, without a newline. */
  requestLeadership(): string
}

/** The connection of a synced observer. */
export interface ObserverReport {
  readonly serverId: number
  /** Host and port from which the observer has connected. */
  readonly address: string
  /** Milliseconds since 1970. */
  readonly establishedAt: number
  /** Packets that wait until the observer is synced. */
  readonly heldPackets: number
  /** Bytes that the observer has not read. */
  readonly unsentBytes: number
  readonly packetsReceived: number
  /** Packets, without those of the sync. */
  readonly packetsSent: number
  readonly requests: number
  /** The zxid of the last packet that was sent; -1 before the first. */
  readonly lastZxid: number
  resetStats(): void
}

/** The connection of a leader to a learner. */
export interface PeerReport {
  readonly serverId: number
  /** Milliseconds from the last PING to its answer; undefined before the first. */
  readonly roundTripMs: number | undefined
  /** Bytes that the learner has not read. */
  readonly unsentBytes: number
}

export interface LeaderMetrics {
  /** Connected learners, synced or not. */
  readonly learners: number
  /** Synced voters without the leader. */
  readonly syncedFollowers: number
  readonly syncedNonVotingFollowers: number
  readonly syncedObservers: number
  readonly pendingSyncs: number
  readonly peers: readonly PeerReport[]
  /** Milliseconds since the server became leader. */
  readonly uptimeMs: number
  /** Bytes; -1 before the first proposal. */
  readonly lastProposalSize: number
  readonly minProposalSize: number
  readonly maxProposalSize: number
}

/** The lines of `conf` about a member. Limits are in ticks. */
export interface MemberConf {
  readonly serverId: number
  readonly initLimit: number
  readonly syncLimit: number
  readonly electionAlg: number
  readonly electionPort: number
  readonly quorumPort: number
  readonly isObserver: boolean
  /** The active configuration, with its version in the last line and no newline at the end. Absent on a read-only server. */
  readonly membership?: string
}
