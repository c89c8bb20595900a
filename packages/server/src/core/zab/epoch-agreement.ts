import { formatZxid, MAX_EPOCH } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { PROTOCOL_VERSION, type LearnerInfo } from './payloads.ts'

/** The last epoch in which a server leads: zxids of the next one would not stay exact as numbers. */
export const MAX_LEADER_EPOCH = MAX_EPOCH - 1

/** How recent the history of a server is: its currentEpoch, then its last zxid. */
export interface LogPosition {
  readonly epoch: number
  readonly zxid: Zxid
}

/** Returns whether `a` is more recent than `b`. */
export function isAhead(a: LogPosition, b: LogPosition): boolean {
  return a.epoch !== b.epoch ? a.epoch > b.epoch : a.zxid > b.zxid
}

/** The epoch agreement of a leader with a quorum (quorum-protocol 8.2): first the epoch is chosen, then accepted. */
export class EpochAgreement {
  readonly #self: ServerId
  readonly #isQuorum: (servers: ReadonlySet<ServerId>) => boolean
  /** Participants that have connected, including the leader (`connecting`). */
  readonly #connected = new Set<ServerId>()
  /** Servers that have accepted the epoch, including the leader (`electing`). */
  readonly #accepted = new Set<ServerId>()
  #epoch = 0
  #isEpochChosen = false
  #isEpochAccepted = false

  /** `isQuorum` returns whether these servers are a quorum. */
  constructor(self: ServerId, isQuorum: (servers: ReadonlySet<ServerId>) => boolean) {
    this.#self = self
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
   * one. Only participants count for the quorum.
   */
  addServer(server: ServerId, isParticipant: boolean, acceptedEpoch: number): boolean {
    if (this.#isEpochChosen) return false
    this.#epoch = Math.max(this.#epoch, acceptedEpoch + 1)
    if (isParticipant) this.#connected.add(server)
    this.#isEpochChosen = this.#connected.has(this.#self) && this.#isQuorum(this.#connected)
    return this.#isEpochChosen
  }

  /**
   * Records that a server has accepted the epoch. Returns whether a quorum has, for the first time (quorum-protocol 8.2
   * step 4).
   */
  acceptEpoch(server: ServerId): boolean {
    if (this.#isEpochAccepted) return false
    this.#accepted.add(server)
    this.#isEpochAccepted = this.#accepted.has(this.#self) && this.#isQuorum(this.#accepted)
    return this.#isEpochAccepted
  }
}

/**
 * Returns the reason to reject a learner because of its FOLLOWERINFO or OBSERVERINFO, or undefined (quorum-protocol 8.2).
 */
export function refusalReason(
  { serverId, protocolVersion, configVersion }: LearnerInfo,
  acceptedEpoch: number,
  self: ServerId,
  activeVersion: Zxid,
): string | undefined {
  if (serverId === self) return `it has the id of this server, ${serverId}`
  if (protocolVersion < PROTOCOL_VERSION)
    return `its protocol version is ${protocolVersion}, older than ${PROTOCOL_VERSION}`
  if (configVersion > activeVersion)
    return `its configuration ${formatZxid(configVersion)} is newer than ${formatZxid(activeVersion)} here`
  if (acceptedEpoch < 0 || acceptedEpoch >= MAX_LEADER_EPOCH)
    return `its accepted epoch ${acceptedEpoch} is not from 0 to ${MAX_LEADER_EPOCH - 1}`
  return undefined
}
