import { counterOf, epochOf, formatZxid, makeZxid } from '@zabra/protocol'
import {
  verifierOf,
  type EnsembleConfiguration,
  type QuorumVerifiers,
  type QuorumVerifier,
  type ServerId,
} from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { designateLeader } from './designate-leader.ts'
import type { LearnerRegistry } from './learner-progress.ts'
import type { Broadcast, LeaderOptions } from './leader-types.ts'
import { AckTracker } from './ack-tracker.ts'
import { proposedConfiguration } from './reconfig-txn.ts'

/**
 * What a leader proposes and commits, and by whose judgement: its configurations and what a quorum of them has.
 * The part of the leader that every write passes through.
 */
export class CommitTracker {
  readonly #options: LeaderOptions
  readonly #broadcast: Broadcast
  readonly #learners: LearnerRegistry
  /** Called after commits, before anything else happens. */
  readonly #onCommitted: () => void
  readonly #acks = new AckTracker()
  #active: EnsembleConfiguration
  #proposed: EnsembleConfiguration | undefined
  #quorums: QuorumVerifiers
  /** The zxid of the change of configuration that is on its way, or -1. */
  #reconfigZxid: Zxid = -1
  /** The epoch that is led, or -1 while nothing may be committed. */
  #epoch = -1
  #designatedLeader: ServerId | undefined
  #isCommitting = false
  #oracleAllows = false
  lastProposed: Zxid
  lastCommitted: Zxid

  constructor(options: LeaderOptions, broadcast: Broadcast, handles: LearnerRegistry, settled: () => void) {
    this.#options = options
    this.#broadcast = broadcast
    this.#learners = handles
    this.#onCommitted = settled
    this.#active = options.active
    const { proposed } = options
    this.#proposed =
      proposed !== undefined && proposed.version > options.active.version ? proposed : undefined
    this.#quorums = this.#verifiers()
    this.lastProposed = options.lastZxid
    this.lastCommitted = options.lastZxid
  }

  get active(): EnsembleConfiguration {
    return this.#active
  }

  /** Undefined unless it is newer than the active one. */
  get proposed(): EnsembleConfiguration | undefined {
    return this.#proposed
  }

  get quorums(): QuorumVerifiers {
    return this.#quorums
  }

  /** Who is to lead instead of this server, which commits nothing more then (14.4, invariant 20). */
  get designatedLeader(): ServerId | undefined {
    return this.#designatedLeader
  }

  /** Whether this server leads, and is to go on leading. */
  get canCommit(): boolean {
    return this.#epoch !== -1 && this.#designatedLeader === undefined
  }

  /** What is not committed yet, and who has how much of it. */
  get acks(): AckTracker {
    return this.#acks
  }

  get outstanding(): number {
    return this.#acks.pending.length
  }

  set oracle(goOn: boolean) {
    this.#oracleAllows = goOn
    this.maybeCommit()
  }

  /** Proposals of this epoch may come. */
  beginEpoch(epoch: number, zxid: Zxid): void {
    this.#epoch = epoch
    this.lastProposed = zxid
    this.lastCommitted = zxid
  }

  endEpoch(): void {
    this.#epoch = -1
  }

  propose(zxid: Zxid, payload: Uint8Array): void {
    const configuration = proposedConfiguration(payload)
    if (configuration !== undefined) this.#beginReconfig(zxid, configuration)
    this.lastProposed = zxid
    this.#acks.pending.push(zxid, payload)
    this.#broadcast.proposal(zxid, payload, this.#learners.followers)
  }

  /** B3 (10.3) Acks of other epochs, and those of NEWLEADER and UPTODATE, are not for proposals. */
  acknowledge(server: ServerId, zxid: Zxid): void {
    if (epochOf(zxid) !== this.#epoch || counterOf(zxid) === 0) return
    if (this.#acks.acknowledge(server, zxid)) this.maybeCommit()
  }

  /** A follower's ACK of NEWLEADER says that all it was brought up to date with is on its disk; that is committed already. */
  markSynced(server: ServerId, zxid: Zxid): void {
    this.#acks.acknowledge(server, Math.max(zxid, makeZxid(this.#epoch, 0)))
  }

  /**
   * B4 (10.3, 14.2) Commits in order all that a quorum has. From a change of the configuration on, until that is committed, it
   * takes a quorum of both. What a host does about a commit may lead here again: the outer loop goes on then.
   */
  maybeCommit(): void {
    if (this.#isCommitting || !this.canCommit) return
    this.#isCommitting = true
    try {
      let again: boolean
      do {
        const change = this.#reconfigZxid
        const floor = this.lastCommitted
        this.#commitUpTo(
          this.#quorumZxid(this.#quorums.active, change === -1 ? this.lastProposed : change - 1),
        )
        const changed = change !== -1 && this.lastCommitted === change - 1 && this.#commitReconfig(change)
        again =
          (changed || this.lastCommitted > floor) &&
          this.#designatedLeader === undefined &&
          this.outstanding > 0
      } while (again)
    } finally {
      this.#isCommitting = false
    }
    this.#onCommitted()
  }

  #commitUpTo(zxid: Zxid): void {
    while (this.lastCommitted < zxid) {
      const payload = this.#takeNext()
      this.#broadcast.commit(this.lastCommitted, payload, this.#learners.followers, this.#learners.observers)
    }
  }

  #takeNext(): Uint8Array {
    const { pending: entries } = this.#acks
    const payload = entries.payloadAt(0)
    this.lastCommitted = entries.zxidAt(0)
    entries.shift()
    this.#options.sources.window.add(this.lastCommitted, payload)
    return payload
  }

  #quorumZxid(verifier: QuorumVerifier, limit: Zxid): Zxid {
    if (!this.#canCommitAlone(verifier)) return this.#acks.quorumZxid(verifier, this.lastCommitted, limit)
    return Math.max(this.lastCommitted, Math.min(limit, this.#acks.ackedBy(this.#options.self)))
  }

  // Configurations

  /** R2 (14.2) At most one change of the configuration is on its way. */
  #beginReconfig(zxid: Zxid, configuration: EnsembleConfiguration): void {
    if (this.#reconfigZxid !== -1) {
      const earlier = formatZxid(this.#reconfigZxid)
      throw new RangeError(`Expected no change of the configuration before ${earlier} is committed, got one`)
    }
    this.#reconfigZxid = zxid
    this.#proposed = configuration
    this.#quorums = this.#verifiers()
  }

  /** R3 (14.4) Commits a change of the configuration once both have a quorum; whether it did. */
  #commitReconfig(zxid: Zxid): boolean {
    const { active, proposed } = this.#quorums
    if (this.#quorumZxid(active, zxid) < zxid || this.#quorumZxid(proposed!, zxid) < zxid) return false
    const configuration = this.#proposed!
    const payload = this.#takeNext()
    const designated = this.activate(configuration, (server) => this.#acks.ackedBy(server), zxid)
    const { followers, observers } = this.#learners
    this.#broadcast.activate(zxid, payload, followers, observers, configuration, designated)
    return true
  }

  /** L7 (2.6) A configuration that was written by hand gets its first version with its first leader. */
  assignVersion(version: Zxid): EnsembleConfiguration {
    this.#proposed = { ...this.#active, version }
    this.#quorums = this.#verifiers()
    return this.#proposed
  }

  /** Puts a configuration in force and says who is to lead under it. `has` tells how much a server has of what counts. */
  activate(configuration: EnsembleConfiguration, has: (server: ServerId) => Zxid, zxid: Zxid): ServerId {
    const { self } = this.#options
    const designated = designateLeader(self, this.#active, configuration, has, zxid)
    this.#active = configuration
    this.#proposed = undefined
    this.#reconfigZxid = -1
    this.#quorums = this.#verifiers()
    if (designated !== self) this.#designatedLeader = designated
    return designated
  }

  #verifiers(): QuorumVerifiers {
    const { oracle = false } = this.#options
    const active = verifierOf(this.#active, { oracle })
    return this.#proposed === undefined ? { active } : { active, proposed: verifierOf(this.#proposed) }
  }

  /** Whether these servers decide: a quorum of each configuration. `alone` says whether the oracle is asked. */
  isQuorum(servers: ReadonlySet<ServerId>, { alone = true }: { alone?: boolean } = {}): boolean {
    const { active, proposed } = this.#quorums
    if (!active.isQuorum(servers) && !(alone && this.#canCommitAlone(active))) return false
    return proposed === undefined || proposed.isQuorum(servers)
  }

  /** B5 (2.5) One of two voters may go on without the other when the oracle says so. */
  #canCommitAlone(verifier: QuorumVerifier): boolean {
    return verifier.canAskOracle && this.#oracleAllows && !this.#learners.hasParticipants
  }
}
