import { formatZxid, MAX_EPOCH } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { PROTOCOL_VERSION, type LearnerInfo } from './payloads.ts'

/** The last epoch that is led: zxids of the one after it would not be exact for long. */
export const MAX_LEADER_EPOCH = MAX_EPOCH - 1

/** What a server has: the epoch it is in comes before what it logged. */
export interface LogPosition {
  readonly epoch: number
  readonly zxid: Zxid
}

export function isAhead(a: LogPosition, b: LogPosition): boolean {
  return a.epoch !== b.epoch ? a.epoch > b.epoch : a.zxid > b.zxid
}

/** How a leader and a quorum agree on an epoch, and on that nobody in the quorum has more than the leader (8.2). */
export class Discovery {
  readonly #self: ServerId
  readonly #isQuorum: (servers: ReadonlySet<ServerId>) => boolean
  /** Who has come, with me. */
  readonly #connected = new Set<ServerId>()
  /** Who has promised the epoch, with me. */
  readonly #accepted = new Set<ServerId>()
  #epoch = 0
  #isEpochChosen = false
  #isEpochAccepted = false

  /** `decide` says whether these servers are a quorum. */
  constructor(self: ServerId, decide: (servers: ReadonlySet<ServerId>) => boolean) {
    this.#self = self
    this.#isQuorum = decide
  }

  get epoch(): number {
    return this.#epoch
  }

  /** A quorum has come: the epoch does not change any more. */
  get isEpochChosen(): boolean {
    return this.#isEpochChosen
  }

  /** A quorum has promised the epoch. */
  get isEpochAccepted(): boolean {
    return this.#isEpochAccepted
  }

  /**
   * L2 (8.2 step 2) The epoch is one more than any that was accepted by those who came in time, observers too, who would
   * refuse a lower one. Only participants bring the quorum nearer. Returns whether the epoch is settled by this.
   */
  addServer(server: ServerId, participates: boolean, acceptedEpoch: number): boolean {
    if (this.#isEpochChosen) return false
    this.#epoch = Math.max(this.#epoch, acceptedEpoch + 1)
    if (participates) this.#connected.add(server)
    this.#isEpochChosen = this.#connected.has(this.#self) && this.#isQuorum(this.#connected)
    return this.#isEpochChosen
  }

  /** L4 (8.2 step 4) Returns whether a quorum has promised by this. */
  acceptEpoch(server: ServerId): boolean {
    if (this.#isEpochAccepted) return false
    this.#accepted.add(server)
    this.#isEpochAccepted = this.#accepted.has(this.#self) && this.#isQuorum(this.#accepted)
    return this.#isEpochAccepted
  }
}

/** L3 (8.2) Why somebody who wants to follow `self` cannot, from what it says of itself. */
export function refusalReason(
  { serverId, protocolVersion, configVersion }: LearnerInfo,
  acceptedEpoch: number,
  self: ServerId,
  activeVersion: Zxid,
): string | undefined {
  if (serverId === self) return `it says that it is server ${serverId}, which is this one`
  if (protocolVersion < PROTOCOL_VERSION)
    return `its protocol is ${protocolVersion}, older than ${PROTOCOL_VERSION}`
  if (configVersion > activeVersion)
    return `its configuration ${formatZxid(configVersion)} is newer than ${formatZxid(activeVersion)} here`
  if (acceptedEpoch < 0 || acceptedEpoch >= MAX_LEADER_EPOCH)
    return `its epoch ${acceptedEpoch} is not from 0 to ${MAX_LEADER_EPOCH - 1}`
  return undefined
}
