import { counterOf, epochOf, formatZxid, makeZxid } from '@zabra/protocol'
import {
  verifierOf,
  type EnsembleConfiguration,
  type QuorumVerifier,
  type QuorumVerifiers,
  type ServerId,
} from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { AckTracker } from './ack-tracker.ts'
import { designateLeader } from './designate-leader.ts'
import type { LeaderOptions, LeaderWork } from './leader-types.ts'
import type { LearnerRegistry } from './learner-registry.ts'
import { proposedConfiguration } from './reconfig-txn.ts'

/** The proposals and commits of a leader, and the configurations whose quorums decide. Every write passes through it. */
export class CommitTracker {
  readonly #options: LeaderOptions
  readonly #learners: LearnerRegistry
  readonly #emit: (work: Extract<LeaderWork, { do: 'propose' | 'commit' | 'commitReconfig' }>) => void
  readonly #acks = new AckTracker()
  #active: EnsembleConfiguration
  #proposed: EnsembleConfiguration | undefined
  #verifiers: QuorumVerifiers
  /** Zxid of the uncommitted reconfig, or -1. */
  #reconfigZxid: Zxid = -1
  /** The epoch of the established leader, or -1 while nothing can be committed. */
  #epoch = -1
  #designatedLeader: ServerId | undefined
  #oracleAllows = false
  #lastProposed: Zxid
  #lastCommitted: Zxid
  /** Whether more than before may be committed. */
  #isCommitDue = false

  constructor(
    options: LeaderOptions,
    learners: LearnerRegistry,
    emit: (work: Extract<LeaderWork, { do: 'propose' | 'commit' | 'commitReconfig' }>) => void,
  ) {
    this.#options = options
    this.#learners = learners
    this.#emit = emit
    this.#active = options.active
    const { proposed } = options
    this.#proposed =
      proposed !== undefined && proposed.version > options.active.version ? proposed : undefined
    this.#verifiers = this.#buildVerifiers()
    this.#lastProposed = options.lastZxid
    this.#lastCommitted = options.lastZxid
  }

  get lastProposed(): Zxid {
    return this.#lastProposed
  }

  get lastCommitted(): Zxid {
    return this.#lastCommitted
  }

  /** The active configuration. */
  get active(): EnsembleConfiguration {
    return this.#active
  }

  /** The configuration seen last, if it is newer than the active one. */
  get proposed(): EnsembleConfiguration | undefined {
    return this.#proposed
  }

  get verifiers(): QuorumVerifiers {
    return this.#verifiers
  }

  /**
   * The server designated to lead instead of this one, which commits nothing more (quorum-protocol 14.4,
   * quorum-protocol invariant 20).
   */
  get designatedLeader(): ServerId | undefined {
    return this.#designatedLeader
  }

  /** Whether this server is the established leader and no other one is designated. */
  get canCommit(): boolean {
    return this.#epoch !== -1 && this.#designatedLeader === undefined
  }

  /** The uncommitted proposals and their ACKs. */
  get acks(): AckTracker {
    return this.#acks
  }

  /** Number of uncommitted proposals. */
  get outstanding(): number {
    return this.#acks.pending.length
  }

  setOracle(canLeadAlone: boolean): void {
    this.#oracleAllows = canLeadAlone
    this.#isCommitDue = true
  }

  /** A participant is gone. It may have been the last one, after which the oracle decides. */
  participantLeft(): void {
    this.#isCommitDue = true
  }

  /** Accepts proposals of this epoch, which begin after `zxid`. */
  beginEpoch(epoch: number, zxid: Zxid): void {
    this.#epoch = epoch
    this.#lastProposed = zxid
    this.#lastCommitted = zxid
  }

  endEpoch(): void {
    this.#epoch = -1
  }

  propose(zxid: Zxid, payload: Uint8Array): void {
    const configuration = proposedConfiguration(payload)
    if (configuration !== undefined) this.#beginReconfig(zxid, configuration)
    this.#lastProposed = zxid
    this.#acks.pending.push(payload)
    this.#emit({ do: 'propose', zxid, payload, followers: this.#learners.followers })
  }

  /** Counts an ACK. Ignores ACKs of other epochs, and those of NEWLEADER and UPTODATE (quorum-protocol 10.3). */
  acknowledge(server: ServerId, zxid: Zxid): void {
    if (epochOf(zxid) !== this.#epoch || counterOf(zxid) === 0) return
    if (this.#acks.acknowledge(server, zxid)) this.#isCommitDue = true
  }

  /**
   * Records a follower's ACK of NEWLEADER: it has all committed transactions up to `zxid`, with which it was synced, on
   * disk.
   */
  markSynced(server: ServerId, zxid: Zxid): void {
    this.#acks.acknowledge(server, Math.max(zxid, makeZxid(this.#epoch, 0)))
  }

  /**
   * Commits, in order, all that a quorum has acknowledged (quorum-protocol 10.3). From an uncommitted reconfig on, that takes
   * a quorum of both configurations (quorum-protocol 14.2).
   */
  commitAcknowledged(): void {
    if (!this.#isCommitDue || !this.canCommit) return
    this.#isCommitDue = false
    const reconfig = this.#reconfigZxid
    const limit = reconfig === -1 ? this.#lastProposed : reconfig - 1
    this.#commitUpTo(this.#quorumZxid(this.#verifiers.active, limit))
    if (reconfig === -1 || this.#lastCommitted < limit || !this.#commitReconfig(reconfig)) return
    // The new configuration decides about the proposals after the reconfig.
    if (this.canCommit) this.#commitUpTo(this.#quorumZxid(this.#verifiers.active, this.#lastProposed))
  }

  #commitUpTo(zxid: Zxid): void {
    const first = this.#lastCommitted + 1
    if (zxid < first) return
    const payloads: Uint8Array[] = []
    while (this.#lastCommitted < zxid) payloads.push(this.#takeOldest())
    const { followers, observers } = this.#learners
    this.#emit({ do: 'commit', first, payloads, followers, observers })
  }

  /** Makes the oldest proposal the last committed transaction, and returns its payload. */
  #takeOldest(): Uint8Array {
    const payload = this.#acks.pending.shift()!
    this.#options.sources.window.add(++this.#lastCommitted, payload)
    return payload
  }

  /** Returns the highest zxid up to `limit` that a quorum has acknowledged. */
  #quorumZxid(verifier: QuorumVerifier, limit: Zxid): Zxid {
    if (!this.#canCommitAlone(verifier)) return this.#acks.quorumZxid(verifier, this.#lastCommitted, limit)
    return Math.max(this.#lastCommitted, Math.min(limit, this.#acks.ackedBy(this.#options.self)))
  }

  // Configurations

  /** Records a proposed reconfig. Throws a RangeError if another one is uncommitted (quorum-protocol 14.2). */
  #beginReconfig(zxid: Zxid, configuration: EnsembleConfiguration): void {
    if (this.#reconfigZxid !== -1) {
      const earlier = formatZxid(this.#reconfigZxid)
      throw new RangeError(`Expected no reconfig before reconfig ${earlier} is committed, got one`)
    }
    this.#reconfigZxid = zxid
    this.#proposed = configuration
    this.#verifiers = this.#buildVerifiers()
  }

  /** Commits a reconfig if both configurations have a quorum, and returns whether it did (quorum-protocol 14.4). */
  #commitReconfig(zxid: Zxid): boolean {
    const { active, proposed } = this.#verifiers
    if (this.#quorumZxid(active, zxid) < zxid || this.#quorumZxid(proposed!, zxid) < zxid) return false
    const configuration = this.#proposed!
    const payload = this.#takeOldest()
    const designated = this.activate(configuration, (server) => this.#acks.ackedBy(server), zxid)
    const { followers, observers } = this.#learners
    this.#emit({ do: 'commitReconfig', zxid, payload, followers, observers, configuration, designated })
    return true
  }

  /** Gives a hand-written configuration its first version, under the first leader (quorum-protocol 2.6). */
  assignVersion(version: Zxid): EnsembleConfiguration {
    this.#proposed = { ...this.#active, version }
    this.#verifiers = this.#buildVerifiers()
    return this.#proposed
  }

  /** Activates a configuration and returns its designated leader. `ackedBy` returns what a server has acknowledged. */
  activate(configuration: EnsembleConfiguration, ackedBy: (server: ServerId) => Zxid, zxid: Zxid): ServerId {
    const { self } = this.#options
    const designated = designateLeader(self, this.#active, configuration, ackedBy, zxid)
    this.#active = configuration
    this.#proposed = undefined
    this.#reconfigZxid = -1
    this.#verifiers = this.#buildVerifiers()
    if (designated !== self) this.#designatedLeader = designated
    return designated
  }

  #buildVerifiers(): QuorumVerifiers {
    const { oracle = false } = this.#options
    const active = verifierOf(this.#active, { oracle })
    return this.#proposed === undefined ? { active } : { active, proposed: verifierOf(this.#proposed) }
  }

  /** Returns whether these servers are a quorum of each configuration. `useOracle`: the leader alone may be one. */
  isQuorum(servers: ReadonlySet<ServerId>, { useOracle = true }: { useOracle?: boolean } = {}): boolean {
    const { active, proposed } = this.#verifiers
    if (!active.isQuorum(servers) && !(useOracle && this.#canCommitAlone(active))) return false
    return proposed === undefined || proposed.isQuorum(servers)
  }

  /** Returns whether the oracle allows one of two voters to decide without the other (quorum-protocol 2.5). */
  #canCommitAlone(verifier: QuorumVerifier): boolean {
    return verifier.canAskOracle && this.#oracleAllows && !this.#learners.hasParticipants
  }
}
