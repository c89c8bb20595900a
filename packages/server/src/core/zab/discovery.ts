import { epochOf, formatZxid, makeZxid } from '@zabra/protocol'
import type { CommitTracker } from './commit-tracker.ts'
import { isAhead } from '../log-position.ts'
import { EpochAgreement, MAX_LEADER_EPOCH, refusalReason } from './epoch-agreement.ts'
import type { LeaderOptions, LeaderWork } from './leader-types.ts'
import type { ServerId } from '../quorum/index.ts'
import type { LearnerProgress } from './learner-progress.ts'
import type { LearnerRegistry } from './learner-registry.ts'
import { packetName, PacketType, type QuorumPacket } from './packets.ts'
import { decodeAckEpoch, decodeLearnerInfo, encodeLeaderInfo, type LearnerInfo } from './payloads.ts'
import type { TickCounter } from './tick-counter.ts'

export interface DiscoveryOptions {
  readonly leader: LeaderOptions
  readonly ticks: TickCounter
  readonly learners: LearnerRegistry
  readonly tracker: CommitTracker
  readonly emit: (work: Extract<LeaderWork, { do: 'store' | 'proposeConfiguration' | 'warn' }>) => void
  /** Steps down because no epoch is left. */
  readonly fail: (message: string) => void
}

/**
 * The discovery of a leader (quorum-protocol 8.2): agrees with a quorum on an epoch in which no server has led, and makes sure
 * that no server of that quorum has a more recent history than the leader.
 *
 * The new acceptedEpoch is durable before any learner receives the epoch, and the currentEpoch before any ACK of NEWLEADER is
 * counted (quorum-protocol invariant 4).
 */
export class Discovery {
  readonly #options: DiscoveryOptions
  readonly #agreement: EpochAgreement
  #isAcceptedEpochStored = false
  #isCurrentEpochStored = false
  #deadline: number
  #hasWarned = false

  constructor(options: DiscoveryOptions) {
    this.#options = options
    const { leader, tracker } = options
    this.#agreement = new EpochAgreement(leader.self, leader.acceptedEpoch, (servers, { useOracle }) =>
      tracker.isQuorum(servers, { useOracle }),
    )
    this.#deadline = leader.initLimit
  }

  /** The chosen epoch; -1 before a quorum has connected. */
  get epoch(): number {
    return this.#agreement.isEpochChosen ? this.#agreement.epoch : -1
  }

  /** Whether the currentEpoch is stored, so that learners can be synchronised. */
  get isComplete(): boolean {
    return this.#isCurrentEpochStored
  }

  /** The tick by which the current step must be complete; after discovery, that of the synchronisation. */
  get deadline(): number {
    return this.#deadline
  }

  start(): void {
    const { self, acceptedEpoch } = this.#options.leader
    if (acceptedEpoch >= MAX_LEADER_EPOCH)
      return this.#options.fail(`it has accepted epoch ${acceptedEpoch}, the last one`)
    if (this.#agreement.addServer(self, true, acceptedEpoch, this.#useOracle)) this.#store('acceptedEpoch')
  }

  /** Called when no quorum has connected in time: stores how far the next discovery goes to meet servers with later epochs. */
  giveUp(): void {
    const epoch = this.#agreement.epochForNextDiscovery
    if (epoch !== undefined) this.#options.emit({ do: 'store', what: 'acceptedEpoch', epoch })
  }

  /** Whether the oracle may decide: the other voter has one tick to connect before. */
  get #useOracle(): boolean {
    return this.#options.ticks.now > 0
  }

  /** Repeats the leader's own steps, which may complete because the oracle has allowed the leader to lead alone. */
  retryAlone(): void {
    if (!this.#agreement.isEpochChosen) this.start()
    else if (
      this.#isAcceptedEpochStored &&
      this.#agreement.acceptEpoch(this.#options.leader.self, this.#useOracle)
    )
      this.#store('currentEpoch')
  }

  /**
   * Processes the first packet of a connection, which must be FOLLOWERINFO or OBSERVERINFO. A chosen epoch is final, whatever
   * the server has accepted: one that has accepted a later epoch gets this one too, and leaves or follows without a vote.
   */
  receiveInfo(learner: LearnerProgress, { type, zxid, data }: QuorumPacket): void {
    const { learners, tracker, leader } = this.#options
    if (type !== PacketType.followerInfo && type !== PacketType.observerInfo)
      return learners.drop(learner, `expected followerInfo or observerInfo first, got ${packetName(type)}`)
    const info = decodeLearnerInfo(data)
    const { serverId } = info
    const acceptedEpoch = epochOf(zxid)
    // This leader leads with quorums of the configuration seen last, too, and brings it into force with its epoch: another
    // member may have activated it already.
    const { version } = tracker.proposed ?? tracker.active
    const refusal = refusalReason(info, acceptedEpoch, leader.self, version)
    if (refusal !== undefined) return learners.drop(learner, refusal)
    learner.serverId = serverId
    const occupied = learners.placeRefusal(learner)
    if (occupied !== undefined) return learners.drop(learner, occupied)
    learner.isObserver = type === PacketType.observerInfo
    learner.helpsToLead = !learner.isObserver || this.#observesByProposed(info)
    learner.state = 'identified'
    learner.deadline = Infinity
    if (this.#agreement.addServer(serverId, learner.helpsToLead, acceptedEpoch, this.#useOracle))
      this.#store('acceptedEpoch')
    else if (this.#isAcceptedEpochStored) this.#sendLeaderInfo(learner)
    else if (acceptedEpoch > this.#agreement.limit) this.#warnOfJump(serverId, acceptedEpoch)
  }

  /**
   * Returns whether a learner observes because it has activated the configuration that this leader has only logged, in which it has
   * no vote. It is still needed where it is a voter of the active configuration (quorum-protocol 14.6). A voter that follows as an
   * observer for another reason (quorum-protocol 8.3) does not count.
   */
  #observesByProposed({ serverId, configVersion }: LearnerInfo): boolean {
    const { proposed } = this.#options.tracker
    return proposed?.version === configVersion && proposed.members.get(serverId)?.role !== 'participant'
  }

  #warnOfJump(server: ServerId, acceptedEpoch: number): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    const { limit } = this.#agreement
    const message =
      'A server has accepted an epoch far beyond that of this leader. It counts only when a quorum of voters has accepted such an epoch'
    this.#options.emit({ do: 'warn', context: { server, acceptedEpoch, limit }, message })
  }

  /** The acceptedEpoch is durable: sends the epoch to all identified learners. */
  acceptedEpochStored(epoch: number): void {
    if (epoch !== this.epoch || this.#isAcceptedEpochStored) return
    this.#isAcceptedEpochStored = true
    const { learners, tracker, leader, emit } = this.#options
    const lastSeen = tracker.proposed ?? tracker.active
    if (leader.reconfigEnabled && lastSeen.version === 0)
      emit({ do: 'proposeConfiguration', configuration: tracker.assignVersion(makeZxid(epoch, 0)) })
    for (const learner of learners) if (learner.state === 'identified') this.#sendLeaderInfo(learner)
    if (this.#agreement.acceptEpoch(leader.self, this.#useOracle)) this.#store('currentEpoch')
  }

  #sendLeaderInfo(learner: LearnerProgress): void {
    const { learners } = this.#options
    learner.state = 'epochSent'
    learners.awaitPacket(learner)
    learners.send(learner, PacketType.leaderInfo, makeZxid(this.epoch, 0), encodeLeaderInfo())
  }

  /**
   * Processes ACKEPOCH (quorum-protocol 8.2 step 4). As long as no quorum has accepted the epoch, a learner with a more recent
   * history than the leader is dropped. An epoch that the learner had accepted before, or a learner that does not trust its
   * data, does not count. Other connections of the server are dropped only now, and only if the learner may take their place: anyone
   * can send FOLLOWERINFO with any id, and that must not disconnect a member.
   */
  receiveAckEpoch(learner: LearnerProgress, { zxid, data }: QuorumPacket): void {
    const { learners, leader } = this.#options
    const epoch = decodeAckEpoch(data)
    const occupied = learners.placeRefusal(learner)
    if (occupied !== undefined) return learners.drop(learner, occupied)
    learners.replaceOthers(learner)
    learner.lastZxid = zxid
    learner.state = 'epochAccepted'
    learner.deadline = Infinity
    if (this.#agreement.isEpochAccepted || epoch === -1) return
    if (isAhead({ epoch, zxid }, { epoch: leader.currentEpoch, zxid: leader.lastZxid })) {
      const reason = `it is ahead of this leader, in epoch ${epoch} at ${formatZxid(zxid)}`
      return learners.drop(learner, reason)
    }
    if (zxid !== -1 && learner.helpsToLead && this.#agreement.acceptEpoch(learner.serverId, this.#useOracle))
      this.#store('currentEpoch')
  }

  /** The currentEpoch is durable. Returns whether this completes the discovery. */
  currentEpochStored(epoch: number): boolean {
    if (epoch !== this.epoch || this.#isCurrentEpochStored) return false
    this.#isCurrentEpochStored = true
    return true
  }

  #store(what: 'acceptedEpoch' | 'currentEpoch'): void {
    const { ticks, leader, emit } = this.#options
    this.#deadline = ticks.now + leader.initLimit
    emit({ do: 'store', what, epoch: this.#agreement.epoch })
  }
}
