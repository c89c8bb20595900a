import { counterOf, formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import { votersOf, type EnsembleConfiguration, type ServerId } from '../quorum/index.ts'
import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'
import { CommitTracker } from './commit-tracker.ts'
import { Discovery } from './discovery.ts'
import type {
  ChosenSuccessor,
  ConnectionId,
  LeaderInput,
  LeaderOptions,
  LeaderPhase,
  LeaderWork,
  StepDownReason,
} from './leader-types.ts'
import { LeadershipCheck } from './leadership-check.ts'
import {
  activeFollowers,
  isActiveFollower,
  isLate,
  overdueReason,
  type LearnerProgress,
} from './learner-progress.ts'
import { LearnerRegistry } from './learner-registry.ts'
import { LearnerSync } from './learner-sync.ts'
import { packetName, PacketType, type QuorumPacket } from './packets.ts'
import { StepDownPolicy } from './step-down-policy.ts'
import type { StopDecision } from './stop-permit.ts'
import { TickCounter } from './tick-counter.ts'

/**
 * The state machine of one leadership, from the end of an election to the step-down, without clock, network or disk. Inputs are
 * `step` and, for every write, `propose`, `ack` and `markDurable`. After each of them the host performs all work that
 * `nextWork` returns.
 *
 * First the leader agrees with a quorum on an epoch (`discovery`). Then it synchronises learners; once a quorum has all of
 * its history on disk, that history is committed and the leader is established (`synchronisation`). From then on it proposes
 * transactions in order, and commits each when a quorum has it on disk (`broadcast`).
 */
export class Leader {
  readonly #options: LeaderOptions
  readonly #ticks = new TickCounter()
  readonly #learners: LearnerRegistry
  readonly #sync: LearnerSync
  readonly #tracker: CommitTracker
  readonly #discovery: Discovery
  readonly #leadershipCheck: LeadershipCheck
  readonly #stepDownPolicy: StepDownPolicy
  /** The participants that have acknowledged NEWLEADER, and this server. */
  readonly #newLeaderAcks = new Set<ServerId>()
  #phase: LeaderPhase = 'discovery'
  readonly #work = new RingBuffer<LeaderWork | undefined>(undefined)

  constructor(options: LeaderOptions) {
    this.#options = options
    const { self, initLimit, syncLimit, sources } = options
    const emit = (work: LeaderWork): void => this.#work.push(work)
    const ticks = this.#ticks
    const onRemoved = (learner: LearnerProgress): void => this.#learnerRemoved(learner)
    const learners = (this.#learners = new LearnerRegistry({ initLimit, syncLimit, ticks, emit, onRemoved }))
    const tracker = (this.#tracker = new CommitTracker(options, learners, emit))
    this.#sync = new LearnerSync(learners, {
      sources,
      epoch: () => this.epoch,
      // The configuration seen last at the start is committed with the history; one proposed since may never be.
      configuration: () =>
        this.#phase === 'broadcast' ? this.activeConfiguration : this.lastSeenConfiguration,
      emit,
    })
    this.#leadershipCheck = new LeadershipCheck(self, learners, tracker, emit)
    this.#stepDownPolicy = new StepDownPolicy(options, learners, tracker, emit)
    const fail = (message: string): void => this.#stepDown({ message })
    this.#discovery = new Discovery({ leader: options, ticks, learners, tracker, emit, fail })
  }

  get phase(): LeaderPhase {
    return this.#phase
  }

  /** The epoch of this leader; -1 until a quorum has connected. */
  get epoch(): number {
    return this.#discovery.epoch
  }

  /**
   * Whether `propose` is allowed: the leader is established, does not prepare to step down, and the epoch has counters
   * left.
   */
  get canPropose(): boolean {
    return this.#stepDownPolicy.canPropose
  }

  get lastProposed(): Zxid {
    return this.#tracker.lastProposed
  }

  /** Number of uncommitted proposals. */
  get outstanding(): number {
    return this.#tracker.outstanding
  }

  get activeConfiguration(): EnsembleConfiguration {
    return this.#tracker.active
  }

  /** The configuration of an uncommitted reconfig, or else the active one. */
  get lastSeenConfiguration(): EnsembleConfiguration {
    return this.#tracker.proposed ?? this.#tracker.active
  }

  /**
   * Returns the active followers and this server. A reconfig is accepted only if they are a quorum of the new configuration
   * (quorum-protocol 14.1).
   */
  syncedVoters(): Set<ServerId> {
    return activeFollowers(this.#learners).add(this.#options.self)
  }

  /** Returns why leadership cannot be transferred now, to the server `to` if it is given; undefined where it can. */
  transferRefusal(to?: ServerId): string | undefined {
    return this.#stepDownPolicy.transferRefusal(this.#ticks.now, to)
  }

  // Inputs of every write

  /**
   * Proposes the next transaction, whose zxid is `lastProposed` + 1. The caller appends the payload to the leader's log and
   * calls `markDurable`; before a reconfig it keeps the configuration as the one seen last. Throws a RangeError for any other
   * zxid, if `canPropose` is false, and for a second uncommitted reconfig.
   */
  propose(zxid: Zxid, payload: Uint8Array): void {
    const expected = this.#tracker.lastProposed + 1
    if (!this.canPropose || zxid !== expected) {
      const allowed = this.canPropose ? formatZxid(expected) : 'no proposal'
      throw new RangeError(`Expected ${allowed}, got ${formatZxid(zxid)}`)
    }
    this.#tracker.propose(zxid, payload)
  }

  /** Processes an ACK of a learner. */
  ack(from: ConnectionId, zxid: Zxid): void {
    const learner = this.#learners.get(from)
    if (learner === undefined || this.#phase === 'over') return
    if (learner.state === 'active') this.#receiveAck(learner, zxid)
    else this.#receivePacket(learner, { type: PacketType.ack, zxid, data: null, auth: null })
  }

  /** Records that the leader's own log is durable up to and including this zxid. */
  markDurable(zxid: Zxid): void {
    this.#tracker.acknowledge(this.#options.self, zxid)
  }

  /**
   * Extends the deadline of a learner: bytes were received from it, or it reads the data that is sent to it. Returns whether
   * its requests can be processed.
   */
  heartbeat(from: ConnectionId): boolean {
    const learner = this.#learners.get(from)
    if (learner !== undefined) this.#learners.heartbeat(learner)
    return learner?.state === 'active' && this.#phase !== 'over'
  }

  // All other inputs

  step(input: LeaderInput): void {
    if (this.#phase !== 'over') this.#dispatchInput(input)
  }

  /** Removes and returns the next work for the host, or returns undefined. The ACKs since the last call are counted at once. */
  nextWork(): LeaderWork | undefined {
    if (this.#work.length === 0) {
      this.#tracker.commitAcknowledged()
      this.#leadershipCheck.confirmCommitted()
    }
    return this.#work.shift()
  }

  #dispatchInput(input: LeaderInput): void {
    switch (input.type) {
      case 'start':
        return this.#discovery.start()
      case 'accepted':
        return this.#accept(input.from, input.isAuthenticated === true)
      case 'packet': {
        const learner = this.#learners.get(input.from)
        return learner === undefined ? undefined : this.#receivePacket(learner, input.packet)
      }
      case 'closed':
        return this.#learners.remove(this.#learners.get(input.from))
      case 'streamed':
        return this.#endSnapshot(this.#learners.get(input.to))
      case 'stored':
        if (input.what === 'acceptedEpoch') return this.#discovery.acceptedEpochStored(input.epoch)
        return this.#discovery.currentEpochStored(input.epoch) ? this.#synchronise() : undefined
      case 'halfTick':
        return this.#halfTick()
      case 'checkLeadership':
        return this.#leadershipCheck.request(input.id)
      case 'oracle':
        return this.#tracker.setOracle(input.canLeadAlone)
      case 'transfer':
        return this.#transfer(input.to)
      case 'suspend':
        return this.#stepDownPolicy.suspend()
    }
  }

  // Packets

  /**
   * Adds a connection. Unidentified connections are bounded, so that they do not keep learners out; the oldest is dropped.
   */
  #accept(connection: ConnectionId, isAuthenticated: boolean): void {
    const { maxLearners = 1000, maxUnidentified = 100 } = this.#options
    if (this.#learners.identifiedCount >= maxLearners) {
      this.#work.push({ do: 'drop', connection, reason: `there are already ${maxLearners} learners` })
      return
    }
    const unidentified = this.#learners.unidentified()
    if (unidentified.length >= maxUnidentified)
      this.#learners.drop(unidentified[0]!, 'there are too many unidentified connections')
    this.#learners.add(connection, isAuthenticated)
  }

  #receivePacket(learner: LearnerProgress, packet: QuorumPacket): void {
    this.#learners.heartbeat(learner)
    try {
      this.#dispatchPacket(learner, packet)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#learners.drop(learner, error.message)
    }
  }

  /** Dispatches a packet by the state of its sender (quorum-protocol 7.4). */
  #dispatchPacket(learner: LearnerProgress, packet: QuorumPacket): void {
    const { type, zxid } = packet
    const { state } = learner
    if (state === 'unidentified') return this.#discovery.receiveInfo(learner, packet)
    if (state === 'epochSent' && type === PacketType.ackEpoch) return this.#receiveAckEpoch(learner, packet)
    if (state === 'syncing' && type === PacketType.ack) return this.#receiveSyncAck(learner, zxid)
    if (state === 'synced' && type === PacketType.ack) return this.#noteEarlyAck(learner, zxid)
    if (state === 'active') return this.#receiveActive(learner, packet)
    this.#learners.drop(learner, `unexpected ${packetName(type)} in state ${state}`)
  }

  /** Processes a packet of an active learner. */
  #receiveActive(learner: LearnerProgress, packet: QuorumPacket): void {
    switch (packet.type) {
      case PacketType.ack:
        return this.#receiveAck(learner, packet.zxid)
      case PacketType.ping:
        this.#deliver(learner, packet)
        return this.#leadershipCheck.receivePong(learner)
      case PacketType.request:
      case PacketType.revalidate:
        return this.#deliver(learner, packet)
      default:
        this.#warnUnexpected(learner, packet.type, packet.zxid)
    }
  }

  #receiveAck(learner: LearnerProgress, zxid: Zxid): void {
    this.#learners.heartbeat(learner)
    if (zxid > this.#tracker.lastProposed) return this.#receiveLaterAck(learner, zxid)
    if (!learner.isObserver) this.#tracker.acknowledge(learner.serverId, zxid)
  }

  /** Receives the ACK of what was not proposed to all: of the transaction of a chosen successor. */
  #receiveLaterAck(learner: LearnerProgress, zxid: Zxid): void {
    if (this.#stepDownPolicy.takesOver(learner, zxid)) this.#stepDownIfDue()
    else this.#warnUnexpected(learner, PacketType.ack, zxid)
  }

  #deliver({ connection, serverId }: LearnerProgress, packet: QuorumPacket): void {
    this.#work.push({ do: 'deliver', from: connection, server: serverId, packet })
  }

  // Synchronisation

  #receiveAckEpoch(learner: LearnerProgress, packet: QuorumPacket): void {
    this.#discovery.receiveAckEpoch(learner, packet)
    if (this.#discovery.isComplete && learner.state === 'epochAccepted') this.#syncLearner(learner)
  }

  /** Discovery is complete: synchronises the learners that have accepted the epoch. */
  #synchronise(): void {
    this.#phase = 'synchronisation'
    this.#newLeaderAcks.add(this.#options.self)
    for (const learner of this.#learners) if (learner.state === 'epochAccepted') this.#syncLearner(learner)
    this.#establish()
  }

  #syncLearner(learner: LearnerProgress): void {
    const { acks, pending, lastCommitted } = this.#tracker
    acks.forget(learner.serverId)
    learner.syncedZxid = lastCommitted
    this.#sync.begin(learner, lastCommitted, learner.isObserver ? [] : pending)
    const { connection, serverId: server, isObserver } = learner
    this.#work.push({ do: 'learnerJoined', connection, server, isObserver })
  }

  /** Sends NEWLEADER behind a snapshot: its ACK also confirms what was committed, and sent, while the snapshot was. */
  #endSnapshot(learner: LearnerProgress | undefined): void {
    if (learner?.isStreaming !== true) return
    learner.syncedZxid = this.#tracker.lastCommitted
    this.#sync.sendNewLeader(learner)
  }

  /**
   * Processes an ACK of a syncing learner. A learner before 3.9.3 may acknowledge proposals before NEWLEADER
   * (quorum-protocol 9.6, ZOOKEEPER-4685). Such an ACK counts from the ACK of NEWLEADER on: before that, earlier history may not be durable.
   */
  #receiveSyncAck(learner: LearnerProgress, zxid: Zxid): void {
    if (counterOf(zxid) !== 0) return this.#noteEarlyAck(learner, zxid)
    if (!this.#sync.isNewLeaderAck(learner, zxid)) return
    learner.state = 'synced'
    learner.deadline = Infinity
    if (learner.helpsToLead) this.#newLeaderAcks.add(learner.serverId)
    if (this.#phase === 'broadcast') this.#activateLearner(learner)
    else this.#establish()
  }

  #noteEarlyAck(learner: LearnerProgress, zxid: Zxid): void {
    if (zxid <= this.lastProposed) learner.earlyAck = Math.max(learner.earlyAck, zxid)
  }

  /**
   * Establishes the leader once a quorum has its history on disk (quorum-protocol 10.1). The history is committed, and with it
   * the configuration seen last (quorum-protocol 14.6).
   */
  #establish(): void {
    if (this.#phase !== 'synchronisation' || !this.#tracker.isQuorum(this.#newLeaderAcks)) return
    this.#phase = 'broadcast'
    const zxid = makeZxid(this.epoch, 0)
    this.#tracker.beginEpoch(this.epoch, zxid)
    const configuration = this.#tracker.proposed
    if (configuration !== undefined) {
      const ackedBy = (server: ServerId): Zxid => (this.#newLeaderAcks.has(server) ? zxid : -1)
      const designated = this.#tracker.activate(configuration, ackedBy, zxid)
      this.#work.push({ do: 'activate', configuration, designated })
    }
    if (this.#tracker.designatedLeader === undefined) this.#work.push({ do: 'lead', epoch: this.epoch, zxid })
    for (const learner of this.#learners) if (learner.state === 'synced') this.#activateLearner(learner)
    this.#leadershipCheck.advance()
  }

  /** Sends UPTODATE and counts the ACKs received before. */
  #activateLearner(learner: LearnerProgress): void {
    this.#sync.activate(learner)
    if (learner.isObserver) return
    this.#tracker.markSynced(learner.serverId, learner.syncedZxid)
    this.#receiveAck(learner, learner.earlyAck)
  }

  // Liveness

  /** Sends PINGs every half tick and checks the learners every tick (quorum-protocol 11). */
  #halfTick(): void {
    if (this.#ticks.advance()) this.#checkLearners()
    if (this.#phase !== 'broadcast') return
    this.#leadershipCheck.pingLearners()
    this.#stepDownIfDue()
  }

  #checkLearners(): void {
    const tick = this.#ticks.now
    for (const learner of this.#learners) {
      const reason = overdueReason(learner, this.#tracker, tick, this.#options.syncLimit)
      if (reason !== undefined) this.#learners.drop(learner, reason)
    }
    if (this.#phase === 'broadcast') return this.#checkQuorum()
    if (this.#options.oracle === true) {
      this.#discovery.retryAlone()
      this.#establish()
    }
    if (tick <= this.#discovery.deadline || !this.#isStarting) return
    this.#discovery.giveUp()
    this.#stepDown({ message: `no quorum in time for ${this.#phase}` })
  }

  get #isStarting(): boolean {
    return this.#phase === 'discovery' || this.#phase === 'synchronisation'
  }

  /**
   * Steps down if the followers that are active or being synchronised are no quorum, unless another leader is designated.
   */
  #checkQuorum(): void {
    const servers = this.syncedVoters()
    for (const { state, isObserver, serverId } of this.#learners)
      if (!isObserver && state === 'syncing') servers.add(serverId)
    if (this.#tracker.designatedLeader === undefined && !this.#tracker.isQuorum(servers))
      this.#stepDown({ message: 'too few followers are synced' })
  }

  /** Whether a quorum has been heard within this many ticks, the leader included. */
  hasHeardQuorumWithin(ticks: number): boolean {
    return this.#tracker.isQuorum(this.#heardWithin(ticks))
  }

  #heardWithin(ticks: number): Set<ServerId> {
    const { self, syncLimit } = this.#options
    const heard = new Set([self])
    for (const learner of this.#learners)
      if (isActiveFollower(learner) && learner.deadline >= this.#ticks.now + syncLimit - ticks)
        heard.add(learner.serverId)
    return heard
  }

  /**
   * Decides whether a server may stop while `stopping` have a permit to stop already: the voters that are left, have sent a packet within
   * `ticks` and have acknowledged what was proposed longer ago than that must be a quorum. Where the others can never be one, as in an
   * ensemble of one or two, one server at a time may stop while none is missing.
   */
  decideStop(server: ServerId, stopping: ReadonlySet<ServerId>, ticks: number): StopDecision {
    const heard = this.#heardWithin(ticks)
    for (const learner of this.#learners)
      if (isLate(learner, this.#tracker, this.#ticks.now, ticks)) heard.delete(learner.serverId)
    const { active } = this.#tracker.verifiers
    const voters = votersOf(this.activeConfiguration).filter((id) => active.weightOf(id) > 0)
    // A server without a vote, or whose vote has no weight, counts for no quorum, so its permit never blocks that of a voter.
    const isNeeded = voters.includes(server) || this.#tracker.proposed !== undefined
    const others = voters.filter((id) => id !== server)
    const missing = others.filter((id) => !heard.has(id))
    const isQuorum = (ids: Iterable<ServerId>): boolean =>
      this.#tracker.isQuorum(new Set(ids), { useOracle: false })
    const isSpared = isQuorum(others)
      ? isQuorum([...heard].filter((id) => id !== server && !stopping.has(id)))
      : missing.length === 0 && !others.some((id) => stopping.has(id))
    return { isAllowed: !isNeeded || (this.canPropose && isSpared), missing }
  }

  // Step-down

  #transfer(to: ChosenSuccessor | undefined): void {
    const refusal = this.#stepDownPolicy.transfer(this.#ticks.now, to)
    if (refusal === undefined) this.#stepDownIfDue()
    else this.#warn({ id: 'quorum.transfer-refused', phase: this.#phase }, refusal)
  }

  #stepDownIfDue(): void {
    const tick = this.#ticks.now
    const reason = this.#stepDownPolicy.dueReason(tick)
    if (reason !== undefined) this.#stepDown(reason)
    else if (this.#stepDownPolicy.cancelExpiredTransfer(tick))
      this.#warn({}, 'Leadership is not transferred: no follower had all transactions in time')
  }

  #stepDown(reason: StepDownReason): void {
    this.#phase = 'over'
    this.#tracker.endEpoch()
    this.#work.push({ do: 'stepDown', reason })
  }

  /** A learner is gone. Its ACKs still count, since the transactions are on its disk (quorum-protocol 7.4). */
  #learnerRemoved({ hasJoined, connection, serverId }: LearnerProgress): void {
    if (hasJoined) this.#work.push({ do: 'learnerLeft', connection, server: serverId })
    this.#tracker.participantLeft()
  }

  #warnUnexpected({ serverId: server }: LearnerProgress, type: number, zxid: Zxid): void {
    const context = { server, packet: packetName(type), zxid: formatZxid(zxid) }
    this.#warn(context, 'Ignored an unexpected packet of a learner')
  }

  #warn(context: object, message: string): void {
    this.#work.push({ do: 'warn', context, message })
  }
}
