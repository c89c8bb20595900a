/** What the four-letter words say of a server's role, filled by whoever plays it. Read when a word is asked. */
export interface RoleMetrics {
  readonly mode: 'standalone' | 'leader' | 'follower' | 'observer' | 'read-only'
  /** The rest is of members of an ensemble. */
  readonly member?: MemberStatus
}

export interface MemberStatus {
  /** As in `leading - broadcast`, `following - synchronization`, `observing - broadcast`. */
  readonly peerState: string
  /** Voters of the configuration in force. */
  readonly quorumSize: number
  readonly conf: MemberConf
  /** Only where this server leads. */
  readonly leader?: LeaderStatus
  /** Whom an observer follows. */
  readonly observerMasterId?: number
  /** Observers that this server keeps up to date, on a follower that serves some. */
  readonly syncedObservers?: number
  /** Figures that Apache ZooKeeper lacks, without the `zk_` before their keys. */
  readonly extraMetrics?: readonly (readonly [key: string, value: string | number])[]
  /** Hands leadership over (`ydld`). Returns what is answered, without a newline. */
  yieldLeadership(): string
  /** Asks for leadership (`rqld`). Returns what is answered, without a newline. */
  requestLeadership(): string
}

export interface LeaderStatus {
  /** Connected learners, whether in step or not. */
  readonly learners: number
  /** Voters in step, without the leader. */
  readonly syncedFollowers: number
  readonly syncedNonVotingFollowers: number
  readonly syncedObservers: number
  readonly pendingSyncs: number
  /** Milliseconds since it took office. */
  readonly uptimeMs: number
  /** Bytes; -1 before the first proposal. */
  readonly lastProposalSize: number
  readonly minProposalSize: number
  readonly maxProposalSize: number
}

/** What `conf` shows of a member. Limits in ticks. */
export interface MemberConf {
  readonly serverId: number
  readonly initLimit: number
  readonly syncLimit: number
  readonly electionAlg: number
  readonly electionPort: number
  readonly quorumPort: number
  readonly isObserver: boolean
  /** The configuration in force, its version in the last line, without a newline at the end. A read-only server shows none. */
  readonly membership?: string
}
