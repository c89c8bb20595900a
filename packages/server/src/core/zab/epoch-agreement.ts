import { formatZxid, MAX_EPOCH } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { PROTOCOL_VERSION, type LearnerInfo } from './payloads.ts'

/** The last epoch in which a server leads: zxids of the next one would not stay exact as numbers. */
export const MAX_LEADER_EPOCH = MAX_EPOCH - 1

/**
 * How far a leader follows the accepted epoch of a single server beyond its own one. Honest members are a few failed elections
 * apart; a server that claims more must not use up the epochs of all.
 */
export const MAX_EPOCH_JUMP = 1024

/** Returns whether these servers are a quorum, with the answer of an oracle if `useOracle` is set. */
export type EpochQuorum = (servers: ReadonlySet<ServerId>, options: { useOracle: boolean }) => boolean

/** The acceptedEpoch that a server has sent. */
interface EpochClaim {
  readonly acceptedEpoch: number
  readonly isParticipant: boolean
}

/** The epoch agreement of a leader with a quorum (quorum-protocol 8.2): first the epoch is chosen, then accepted. */
export class EpochAgreement {
  readonly #self: ServerId
  readonly #ownEpoch: number
  readonly #isQuorum: EpochQuorum
  /** What the servers that have connected have accepted, the leader included. */
  readonly #claims = new Map<ServerId, EpochClaim>()
  /** Servers that have accepted the epoch, including the leader (`electing`). */
  readonly #accepted = new Set<ServerId>()
  #epoch = 0
  #isEpochChosen = false
  #isEpochAccepted = false

  /** `ownEpoch` is the acceptedEpoch of the leader. */
  constructor(self: ServerId, ownEpoch: number, isQuorum: EpochQuorum) {
    this.#self = self
    this.#ownEpoch = ownEpoch
    this.#isQuorum = isQuorum
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Whether a quorum has connected, so that the epoch is final. */
  get isEpochChosen(): boolean {
    return this.#isEpochChosen
  }

  /** Whether a quorum has accepted the epoch. */
  get isEpochAccepted(): boolean {
    return this.#isEpochAccepted
  }

  /**
   * Records a connected server and returns whether this makes the epoch final (quorum-protocol 8.2 step 2). The epoch is one
   * above the highest acceptedEpoch of the servers that connect before, observers included, since they would refuse a lower
   * one. Only participants count for the quorum. A server whose acceptedEpoch is beyond `limit` does not count at all. What a server
   * has claimed before is not taken back: a second connection may be of another server that claims its id.
   */
  addServer(server: ServerId, isParticipant: boolean, acceptedEpoch: number, useOracle: boolean): boolean {
    if (this.#isEpochChosen) return false
    this.#claims.set(server, this.#merge(this.#claims.get(server), { acceptedEpoch, isParticipant }))
    const { limit } = this
    const counted = [...this.#claims].filter(([, claim]) => claim.acceptedEpoch <= limit)
    this.#epoch = Math.max(...counted.map(([, claim]) => claim.acceptedEpoch + 1))
    const connected = new Set(counted.filter(([, claim]) => claim.isParticipant).map(([id]) => id))
    this.#isEpochChosen = connected.has(this.#self) && this.#isQuorum(connected, { useOracle })
    return this.#isEpochChosen
  }

  /** Returns what two connections of a server claim together: the higher epoch of those that count, or else the lower one. */
  #merge(before: EpochClaim | undefined, claim: EpochClaim): EpochClaim {
    if (before === undefined) return claim
    const epochs = [before.acceptedEpoch, claim.acceptedEpoch]
    const counted = epochs.filter((epoch) => epoch <= this.limit)
    return {
      acceptedEpoch: counted.length > 0 ? Math.max(...counted) : Math.min(...epochs),
      isParticipant: before.isParticipant || claim.isParticipant,
    }
  }

  /**
   * The highest acceptedEpoch that counts: `MAX_EPOCH_JUMP` above that of the leader, or above the one that a quorum of
   * participants has reached. Never one after which no epoch is left.
   */
  get limit(): number {
    const farthestFirst = [...this.#claims]
      .filter(([, { isParticipant }]) => isParticipant)
      .sort(([, a], [, b]) => b.acceptedEpoch - a.acceptedEpoch)
    const reached = new Set<ServerId>()
    let ofQuorum = this.#ownEpoch
    for (const [id, { acceptedEpoch }] of farthestFirst) {
      if (acceptedEpoch <= ofQuorum) break
      reached.add(id)
      if (this.#isQuorum(reached, { useOracle: false })) ofQuorum = acceptedEpoch
    }
    return Math.min(ofQuorum + MAX_EPOCH_JUMP, MAX_LEADER_EPOCH - 1)
  }

  /**
   * The acceptedEpoch that the leader stores before it gives up: `MAX_EPOCH_JUMP` above its own one, or that of the nearest server
   * beyond `limit`, if such servers would have completed the quorum; undefined otherwise. Two voters of two can be farther apart
   * than `MAX_EPOCH_JUMP` after one of them has believed a false claim; this brings them together, one jump for each discovery.
   */
  get epochForNextDiscovery(): number | undefined {
    const { limit } = this
    const participants = [...this.#claims].filter(([, { isParticipant }]) => isParticipant)
    const beyond = participants.map(([, claim]) => claim.acceptedEpoch).filter((epoch) => epoch > limit)
    const connected = new Set(participants.map(([id]) => id))
    // Without one beyond the limit, a quorum that has connected has chosen the epoch.
    if (this.#isEpochChosen || !this.#isQuorum(connected, { useOracle: false })) return undefined
    const epoch = Math.min(this.#ownEpoch + MAX_EPOCH_JUMP, MAX_LEADER_EPOCH - 1, ...beyond)
    return epoch > this.#ownEpoch ? epoch : undefined
  }

  /**
   * Records that a server has accepted the epoch. Returns whether a quorum has, for the first time (quorum-protocol 8.2
   * step 4).
   */
  acceptEpoch(server: ServerId, useOracle: boolean): boolean {
    if (this.#isEpochAccepted) return false
    this.#accepted.add(server)
    this.#isEpochAccepted = this.#accepted.has(this.#self) && this.#isQuorum(this.#accepted, { useOracle })
    return this.#isEpochAccepted
  }
}

/**
 * Returns the reason to reject a learner because of its FOLLOWERINFO or OBSERVERINFO, or undefined (quorum-protocol 8.2).
 * `knownVersion` is the version of the last configuration that the leader has seen.
 */
export function refusalReason(
  { serverId, protocolVersion, configVersion }: LearnerInfo,
  acceptedEpoch: number,
  self: ServerId,
  knownVersion: Zxid,
): string | undefined {
  if (serverId === self) return `it has the id of this server, ${serverId}`
  if (protocolVersion < PROTOCOL_VERSION)
    return `its protocol version is ${protocolVersion}, older than ${PROTOCOL_VERSION}`
  if (configVersion > knownVersion)
    return `its configuration ${formatZxid(configVersion)} is newer than ${formatZxid(knownVersion)} here`
  if (acceptedEpoch < 0 || acceptedEpoch > MAX_LEADER_EPOCH)
    return `its accepted epoch ${acceptedEpoch} is not from 0 to ${MAX_LEADER_EPOCH}`
  return undefined
}
