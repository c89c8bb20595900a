/** A fault at a world time and, mostly, for a duration. Servers are numbered from 1; 0 is the leader. */
export type Fault = { readonly at: number; readonly forMs: number } & (
  | {
      readonly kind: 'kill' | 'powerCut' | 'pause' | 'fullDisk' | 'syncError'
      readonly server: number
    }
  /** Syncs of a disk take so long on average, 300 ms by default. */
  | { readonly kind: 'slowDisk'; readonly server: number; readonly syncMs?: number }
  /** Shut down, as by SIGTERM, and restarted; or asked to hand over leadership (`ydld`). */
  | { readonly kind: 'stop' | 'handOver'; readonly server: number }
  /** The leader is asked over HTTP to hand leadership over to server `to`, and again after refusals for `forMs`. */
  | { readonly kind: 'transfer'; readonly server: number; readonly to: number }
  /** Power cut of a machine, `afterMs` after its next durable write begins. */
  | { readonly kind: 'tornWrite'; readonly server: number; readonly afterMs: number }
  | { readonly kind: 'killAll' | 'powerCutAll' }
  | { readonly kind: 'wallJump' | 'drift'; readonly server: number; readonly by: number }
  | { readonly kind: 'isolate' | 'dropInbound' | 'dropOutbound'; readonly server: number }
  /**
   * Leader cut off from the other servers and from all clients except those that only read, with a clock at half speed.
   */
  | { readonly kind: 'staleLeader'; readonly server: number }
  | { readonly kind: 'split'; readonly group: readonly number[] }
  | { readonly kind: 'bridge'; readonly server: number }
  | { readonly kind: 'slowLink'; readonly server: number; readonly other: number; readonly ms: number }
  | { readonly kind: 'resetPeers'; readonly server: number }
  /** The connections of a learner to its leader break whenever it has accepted the epoch. */
  | { readonly kind: 'refused'; readonly server: number }
  | {
      readonly kind: 'clientCut' | 'clientReset' | 'clientCrash' | 'clientPause'
      readonly client: number
      readonly server: number
    }
  | { readonly kind: MembershipChange; readonly server: number }
  /**
   * A program that is no member sends anything to all ports: from an address of its own, or from that of a server. The seed
   * determines what it sends.
   */
  | {
      readonly kind: 'stranger'
      readonly server: number
      readonly from: 'elsewhere' | 'server'
      readonly seed: number
    }
  /**
   * Power cut of a server that had accepted epochs `by` later, in which no server led: candidates stored them and failed.
   */
  | { readonly kind: 'laterEpoch'; readonly server: number; readonly by: number }
  /**
   * The other voter of two is killed, and the oracle lets the survivor lead alone. The other one starts only after the
   * survivor has read that it may not any more.
   */
  | { readonly kind: 'alone'; readonly server: number }
  /** A program with the id and the password of a client's session resumes it, with the login or the certificate of another user, or none. */
  | { readonly kind: 'thief'; readonly client: number; readonly server: number; readonly logsIn: boolean }
  /** An operator asks a server to finalize a feature level, the highest possible one by default, and again after refusals for `forMs`. */
  | { readonly kind: 'finalize'; readonly server: number; readonly level?: number }
  /** A server is stopped, and started as a release of another feature level. */
  | { readonly kind: 'install'; readonly server: number; readonly level: number }
  /** The leader that proposes the next feature level, another server or all of them are interrupted `afterMs` later. */
  | {
      readonly kind: 'interruptFinalize'
      readonly how: Interruption
      readonly target: 'leader' | 'other' | 'all'
      readonly afterMs: number
    }
  /**
   * The next leader that has sent a chosen successor one transaction more than the others, that successor, both or all servers are
   * interrupted `afterMs` later.
   */
  | {
      readonly kind: 'interruptTransfer'
      readonly how: Interruption
      readonly target: 'leader' | 'successor' | 'both' | 'all'
      readonly afterMs: number
    }
  /** The leader that proposes the next reconfiguration is interrupted `afterMs` later. */
  | { readonly kind: 'interruptReconfig'; readonly how: Interruption; readonly afterMs: number }
)

/** How servers are interrupted while a reconfiguration or a feature level is proposed, or leadership handed over. */
export type Interruption = 'reset' | 'isolate' | 'kill' | 'powerCut'

/**
 * Membership changes, one after the other: a server leaves, becomes a voter or an observer, gets an empty disk while it
 * does not vote (`wipe`), or leaves, gets an empty disk and rejoins in its old role (`renew`). With `outdated` it should
 * leave a configuration that is no longer in force, which the leader refuses.
 */
export type MembershipChange = 'leave' | 'vote' | 'observe' | 'wipe' | 'renew' | 'outdated'

export const MEMBERSHIP_CHANGES: ReadonlySet<string> = new Set<MembershipChange>([
  'leave',
  'vote',
  'observe',
  'wipe',
  'renew',
  'outdated',
])
