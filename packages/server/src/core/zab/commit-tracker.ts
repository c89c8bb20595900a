import { formatZxid, makeZxid } from '@zabra/protocol'
import {
  verifierOf,
  votersOf,
  type EnsembleConfiguration,
  type QuorumVerifier,
  type QuorumVerifiers,
  type ServerId,
} from '../quorum/index.ts'
import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'
import type { LeaderOptions, LeaderWork } from './leader-types.ts'
import type { LearnerRegistry } from './learner-registry.ts'
import { proposedConfiguration } from './payloads.ts'

/** The proposals and commits of a leader, and the configurations whose quorums decide. Every write passes through it. */
export class CommitTracker {
  readonly #options: LeaderOptions
  readonly #learners: LearnerRegistry
  readonly #emit: (work: Extract<LeaderWork, { do: 'propose' | 'commit' | 'commitReconfig' }>) => void
  readonly #acks = new AckTracker()
  /** The payloads of the uncommitted proposals, from the first one after `lastCommitted` on. */
  readonly #pending = new RingBuffer<Uint8Array | undefined>(undefined)
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

  get acks(): AckTracker {
    return this.#acks
  }

  /** The payloads of the uncommitted proposals, from the first one after `lastCommitted` on. */
  get pending(): Iterable<Uint8Array | undefined> {
    return this.#pending
  }

  /** Number of uncommitted proposals. */
  get outstanding(): number {
    return this.#pending.length
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
    this.#pending.push(payload)
    this.#emit({ do: 'propose', zxid, payload, followers: this.#learners.followers })
  }

  /** Counts an ACK. One of an earlier epoch, of NEWLEADER or of UPTODATE is of what is committed, and changes nothing (quorum-protocol 10.3). */
  acknowledge(server: ServerId, zxid: Zxid): void {
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
    if (reconfig === -1 || !this.#commitReconfig(reconfig)) return
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
    const payload = this.#pending.shift()!
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

/**
 * Counts the ACKs of the proposals of a leader.
 *
 * Every server logs in order, so an ACK says that all earlier transactions are durable there too
 * (quorum-protocol invariant 15). One zxid per server is enough, and commits are in order whatever the order of the ACKs.
 *
 * Uses parallel arrays and one reused set, since it is called for every ACK of every write.
 */
export class AckTracker {
  readonly #servers: ServerId[] = []
  readonly #acks: Zxid[] = []
  /** The result of `#ackersOf`, reused. */
  readonly #ackers = new Set<ServerId>()
  /** By index in `#servers`, whether the server is a voter of `#verifier`, the last verifier used. */
  #votes: boolean[] = []
  #verifier: QuorumVerifier | undefined

  /** Returns the last zxid that a server has acknowledged, or -1. */
  ackedBy(server: ServerId): Zxid {
    const index = this.#servers.indexOf(server)
    return index === -1 ? -1 : this.#acks[index]!
  }

  /** Records that a server has everything up to `zxid`. Returns whether that is new. */
  acknowledge(server: ServerId, zxid: Zxid): boolean {
    const index = this.#servers.indexOf(server)
    if (index === -1) {
      this.#servers.push(server)
      this.#acks.push(zxid)
      this.#verifier = undefined
      return true
    }
    if (zxid <= this.#acks[index]!) return false
    this.#acks[index] = zxid
    return true
  }

  /**
   * Forgets the ACKs of a server, called when its sync begins: it may have to truncate uncommitted transactions, and
   * gets them again as proposals.
   */
  forget(server: ServerId): void {
    const index = this.#servers.indexOf(server)
    if (index === -1) return
    this.#servers.splice(index, 1)
    this.#acks.splice(index, 1)
    this.#verifier = undefined
  }

  /** Returns the highest zxid above `floor` and up to `limit` that a quorum has acknowledged, or `floor`. */
  quorumZxid(verifier: QuorumVerifier, floor: Zxid, limit: Zxid): Zxid {
    const acks = this.#acks
    let best = floor
    for (let i = 0; i < acks.length; i++) {
      const candidate = acks[i]! < limit ? acks[i]! : limit
      if (candidate > best && this.#isAckedByQuorum(verifier, candidate)) best = candidate
    }
    return best
  }

  /** Counts voters in place where all have the same weight, without building a set. */
  #isAckedByQuorum(verifier: QuorumVerifier, zxid: Zxid): boolean {
    const { quorumSize } = verifier
    if (quorumSize === undefined) return verifier.isQuorum(this.#ackersOf(zxid))
    if (this.#verifier !== verifier) {
      this.#verifier = verifier
      this.#votes = this.#servers.map((server) => verifier.voters.has(server))
    }
    let count = 0
    for (let i = 0; i < this.#acks.length; i++) if (this.#acks[i]! >= zxid && this.#votes[i]!) count++
    return count >= quorumSize
  }

  /** Returns the servers that have everything up to this zxid. The set is reused by the next call. */
  #ackersOf(zxid: Zxid): ReadonlySet<ServerId> {
    const ackers = this.#ackers
    ackers.clear()
    for (let i = 0; i < this.#acks.length; i++) if (this.#acks[i]! >= zxid) ackers.add(this.#servers[i]!)
    return ackers
  }
}

/**
 * Returns the designated leader of a configuration (quorum-protocol 14.4): the current leader `self` if it is still a voter
 * and its quorum addresses are unchanged, otherwise the voter that has acknowledged the reconfig `zxid` and the most after
 * it, or the current leader if there is none. `ackedBy` returns the last zxid that a server has acknowledged.
 */
function designateLeader(
  self: ServerId,
  current: EnsembleConfiguration,
  next: EnsembleConfiguration,
  ackedBy: (server: ServerId) => Zxid,
  zxid: Zxid,
): ServerId {
  const voters = votersOf(next)
  // A leader that `next` adds has the address there: its followers have reached it.
  const isAtSameAddress =
    !current.members.has(self) || quorumAddresses(self, current) === quorumAddresses(self, next)
  if (voters.includes(self) && isAtSameAddress) return self
  let [best, highest] = [self, zxid]
  // In ascending order: of those that have acknowledged the same, the highest id.
  for (const server of voters) {
    const acked = ackedBy(server)
    if (server !== self && acked >= highest) [best, highest] = [server, acked]
  }
  return best
}

/** Returns the quorum addresses of a member as one string. */
function quorumAddresses(server: ServerId, { members }: EnsembleConfiguration): string {
  const addresses = members.get(server)?.addresses ?? []
  return addresses.map(({ host, quorumPort }) => `${host} ${quorumPort}`).join()
}
