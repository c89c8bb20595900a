import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import {
  verifierOf,
  type EnsembleConfiguration,
  type Quorums,
  type QuorumVerifier,
  type ServerId,
} from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { designate } from './designate.ts'
import type { Handles } from './handles.ts'
import type { Broadcast, LeaderOptions } from './leader-types.ts'
import { Proposals } from './proposals.ts'
import { configurationIn } from './reconfig.ts'

/**
 * What a leader proposes and commits, and by whose judgement: its configurations and what a quorum of them has.
 * The part of the leader that every write passes through.
 */
export class Commits {
  readonly #options: LeaderOptions
  readonly #broadcast: Broadcast
  readonly #handles: Handles
  /** Called after commits, before anything else happens. */
  readonly #settled: () => void
  readonly #proposals = new Proposals()
  #active: EnsembleConfiguration
  #proposed: EnsembleConfiguration | undefined
  #quorums: Quorums
  /** The zxid of the change of configuration that is on its way, or -1. */
  #reconfigZxid: Zxid = -1
  /** The epoch that is led, or -1 while nothing may be committed. */
  #epoch = -1
  #designated: ServerId | undefined
  #busy = false
  #oracleSaysGo = false
  lastProposed: Zxid
  lastCommitted: Zxid

  constructor(options: LeaderOptions, broadcast: Broadcast, handles: Handles, settled: () => void) {
    this.#options = options
    this.#broadcast = broadcast
    this.#handles = handles
    this.#settled = settled
    this.#active = options.active
    const { proposed } = options
    this.#proposed =
      proposed !== undefined && proposed.version > options.active.version ? proposed : undefined
    this.#quorums = this.#judges()
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

  get quorums(): Quorums {
    return this.#quorums
  }

  /** Who is to lead instead of this server, which commits nothing more then (14.4, invariant 20). */
  get designated(): ServerId | undefined {
    return this.#designated
  }

  /** Whether this server leads, and is to go on leading. */
  get isOpen(): boolean {
    return this.#epoch !== -1 && this.#designated === undefined
  }

  /** What is not committed yet, and who has how much of it. */
  get proposals(): Proposals {
    return this.#proposals
  }

  get outstanding(): number {
    return this.#proposals.entries.length
  }

  set oracle(goOn: boolean) {
    this.#oracleSaysGo = goOn
    this.commit()
  }

  /** Proposals of this epoch may come. */
  open(epoch: number, zxid: Zxid): void {
    this.#epoch = epoch
    this.lastProposed = zxid
    this.lastCommitted = zxid
  }

  close(): void {
    this.#epoch = -1
  }

  propose(zxid: Zxid, payload: Uint8Array): void {
    const configuration = configurationIn(payload)
    if (configuration !== undefined) this.#change(zxid, configuration)
    this.lastProposed = zxid
    this.#proposals.entries.push(zxid, payload)
    this.#broadcast.proposal(zxid, payload, this.#handles.followers)
  }

  /** B3 (10.3) Acks of other epochs, and those of NEWLEADER and UPTODATE, are not for proposals. */
  acknowledge(server: ServerId, zxid: Zxid): void {
    if (epochOf(zxid) !== this.#epoch || counterOf(zxid) === 0) return
    if (this.#proposals.acknowledge(server, zxid)) this.commit()
  }

  /**
   * B4 (10.3, 14.2) Commits in order all that a quorum has. From a change of the configuration on, until that is committed, it
   * takes a quorum of both. What a host does about a commit may lead here again: the outer loop goes on then.
   */
  commit(): void {
    if (this.#busy || !this.isOpen) return
    this.#busy = true
    try {
      let again: boolean
      do {
        const change = this.#reconfigZxid
        const floor = this.lastCommitted
        this.#commitUpTo(this.#point(this.#quorums.active, change === -1 ? this.lastProposed : change - 1))
        const changed = change !== -1 && this.lastCommitted === change - 1 && this.#commitChange(change)
        again =
          (changed || this.lastCommitted > floor) && this.#designated === undefined && this.outstanding > 0
      } while (again)
    } finally {
      this.#busy = false
    }
    this.#settled()
  }

  #commitUpTo(zxid: Zxid): void {
    while (this.lastCommitted < zxid) {
      const payload = this.#takeNext()
      this.#broadcast.commit(this.lastCommitted, payload, this.#handles.followers, this.#handles.observers)
    }
  }

  #takeNext(): Uint8Array {
    const { entries } = this.#proposals
    const payload = entries.payloadAt(0)
    this.lastCommitted = entries.zxidAt(0)
    entries.shift()
    this.#options.sources.window.add(this.lastCommitted, payload)
    return payload
  }

  #point(verifier: QuorumVerifier, limit: Zxid): Zxid {
    if (!this.#isAlone(verifier)) return this.#proposals.point(verifier, this.lastCommitted, limit)
    return Math.max(this.lastCommitted, Math.min(limit, this.#proposals.ackedBy(this.#options.self)))
  }

  // Configurations

  /** R2 (14.2) At most one change of the configuration is on its way. */
  #change(zxid: Zxid, configuration: EnsembleConfiguration): void {
    if (this.#reconfigZxid !== -1) {
      const earlier = formatZxid(this.#reconfigZxid)
      throw new RangeError(`Expected no change of the configuration before ${earlier} is committed, got one`)
    }
    this.#reconfigZxid = zxid
    this.#proposed = configuration
    this.#quorums = this.#judges()
  }

  /** R3 (14.4) Commits a change of the configuration once both have a quorum; whether it did. */
  #commitChange(zxid: Zxid): boolean {
    const { active, proposed } = this.#quorums
    if (this.#point(active, zxid) < zxid || this.#point(proposed!, zxid) < zxid) return false
    const configuration = this.#proposed!
    const payload = this.#takeNext()
    const designated = this.adopt(configuration, (server) => this.#proposals.ackedBy(server), zxid)
    const { followers, observers } = this.#handles
    this.#broadcast.activate(zxid, payload, followers, observers, configuration, designated)
    return true
  }

  /** L7 (2.6) A configuration that was written by hand gets its first version with its first leader. */
  label(version: Zxid): EnsembleConfiguration {
    this.#proposed = { ...this.#active, version }
    this.#quorums = this.#judges()
    return this.#proposed
  }

  /** Puts a configuration in force and says who is to lead under it. `has` tells how much a server has of what counts. */
  adopt(configuration: EnsembleConfiguration, has: (server: ServerId) => Zxid, zxid: Zxid): ServerId {
    const { self } = this.#options
    const designated = designate(self, this.#active, configuration, has, zxid)
    this.#active = configuration
    this.#proposed = undefined
    this.#reconfigZxid = -1
    this.#quorums = this.#judges()
    if (designated !== self) this.#designated = designated
    return designated
  }

  #judges(): Quorums {
    const { oracle = false } = this.#options
    const active = verifierOf(this.#active, { oracle })
    return this.#proposed === undefined ? { active } : { active, proposed: verifierOf(this.#proposed) }
  }

  /** Whether these servers decide: a quorum of each configuration. `alone` says whether the oracle is asked. */
  isQuorum(servers: ReadonlySet<ServerId>, { alone = true }: { alone?: boolean } = {}): boolean {
    const { active, proposed } = this.#quorums
    if (!active.isQuorum(servers) && !(alone && this.#isAlone(active))) return false
    return proposed === undefined || proposed.isQuorum(servers)
  }

  /** B5 (2.5) One of two voters may go on without the other when the oracle says so. */
  #isAlone(verifier: QuorumVerifier): boolean {
    return verifier.mayAskOracle && this.#oracleSaysGo && !this.#handles.hasParticipants
  }
}
