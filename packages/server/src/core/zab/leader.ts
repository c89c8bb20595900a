import { counterOf, epochOf, formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import { printConfiguration, type EnsembleConfiguration, type ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { CommitTracker } from './commit-tracker.ts'
import { Discovery, isAhead, MAX_LEADER_EPOCH, refusalReason } from './discovery.ts'
import {
  LearnerProgress,
  LearnerRegistry,
  awaitsEpoch,
  activeFollowers,
  overdueReason,
} from './learner-progress.ts'
import type {
  StepDownReason,
  Broadcast,
  ConnectionId,
  LeaderInput,
  LeaderOptions,
  LeaderPhase,
  LeaderWork,
} from './leader-types.ts'
import { NO_ZXID, packetName, PacketType, type QuorumPacket } from './packets.ts'
import { decodeAckEpoch, decodeLearnerInfo, encodeConfigurationText, encodeLeaderInfo } from './payloads.ts'
import { StepDownPolicy } from './step-down.ts'
import { LeadershipCheck } from './leadership-check.ts'
import { planSync } from './sync-plan.ts'

const UNEXPECTED_PACKET = 'A learner sent what no learner should send now; it is ignored'

/**
 * One term of a leader, from the end of an election to the next one, without clock, network or disk: inputs in, work out.
 *
 * First it agrees with a quorum on an epoch that nobody has led in, and finds that none of them has more than it has. Then it
 * brings them up to date; once a quorum has all of its history on disk, that history is committed and the leader is established. From
 * then on it proposes transactions in order, and commits each when a quorum has it on disk.
 *
 * The hot path (`propose`, `ack`, `durable`) calls `Broadcast`; all else is work. Rules are numbered; in brackets stands their
 * section in the description of the server protocol.
 */
export class Leader {
  readonly #options: LeaderOptions
  readonly #tracker: CommitTracker
  readonly #discovery: Discovery
  readonly #learners = new LearnerRegistry()
  readonly #leadershipCheck: LeadershipCheck
  readonly #stepDown: StepDownPolicy
  /** Voters whose disks have all of my history, for NEWLEADER. */
  readonly #syncedVoters = new Set<ServerId>()
  #phase: LeaderPhase = 'discovery'
  #acceptedStored = false
  #currentStored = false
  #halfTicks = 0
  #deadline: number
  #work: LeaderWork[] = []

  constructor(options: LeaderOptions, broadcast: Broadcast) {
    this.#options = options
    this.#tracker = new CommitTracker(options, broadcast, this.#learners, () =>
      this.#leadershipCheck.confirmCommitted(),
    )
    this.#leadershipCheck = new LeadershipCheck(
      options.self,
      this.#learners,
      this.#tracker,
      (ticket) => broadcast.confirmed(ticket),
      (handle) => this.#send(handle, PacketType.ping, this.lastProposed, null),
    )
    this.#stepDown = new StepDownPolicy(options, this.#learners, this.#tracker)
    // The oracle is not asked before others had a tick to come.
    this.#discovery = new Discovery(options.self, (servers) =>
      this.#tracker.isQuorum(servers, { alone: this.#tick > 0 }),
    )
    this.#deadline = options.initLimit
  }

  get phase(): LeaderPhase {
    return this.#phase
  }

  /** -1 until a quorum has agreed on one. */
  get epoch(): number {
    return this.#discovery.isEpochChosen ? this.#discovery.epoch : -1
  }

  /** Whether `propose` may be called: this server leads, is not being relieved, and the epoch has room. */
  get canPropose(): boolean {
    return this.#phase === 'broadcast' && this.#stepDown.canPropose
  }

  get lastProposed(): Zxid {
    return this.#tracker.lastProposed
  }

  get lastCommitted(): Zxid {
    return this.#tracker.lastCommitted
  }

  /** How many proposals are not committed yet. */
  get outstanding(): number {
    return this.#tracker.outstanding
  }

  /** The configuration in force. */
  get activeConfiguration(): EnsembleConfiguration {
    return this.#tracker.active
  }

  /** The configuration seen last; the one in force unless a change is on its way. */
  get lastSeenConfiguration(): EnsembleConfiguration {
    return this.#tracker.proposed ?? this.#tracker.active
  }

  /** Voters that are connected and in step, with this one: for the rule that a new configuration must be able to decide (14.1). */
  syncedVoters(): Set<ServerId> {
    return activeFollowers(this.#learners).add(this.#options.self)
  }

  // The hot path

  /**
   * HOT. Proposes the next transaction, whose zxid is `lastProposed` + 1, and calls `Broadcast.proposal`. The caller logs the
   * same bytes here and says so to `durable`; for a change of the configuration it first keeps that as the one seen last.
   * Throws a RangeError for any other zxid, while not `accepting`, and for a second change of the configuration.
   */
  propose(zxid: Zxid, payload: Uint8Array): void {
    if (!this.canPropose || zxid !== this.#tracker.lastProposed + 1) this.#throwUnexpectedProposal(zxid)
    this.#tracker.propose(zxid, payload)
  }

  /** HOT. A learner's ACK of a proposal. False for one that `step` must see: it comes out of turn or names nothing proposed. */
  ack(from: ConnectionId, zxid: Zxid): boolean {
    const handle = this.#learners.get(from)
    if (handle === undefined || handle.state !== 'active' || zxid > this.#tracker.lastProposed) return false
    this.#extendDeadline(handle)
    if (!handle.isObserver) this.#tracker.acknowledge(handle.serverId, zxid)
    return true
  }

  /** HOT. The leader's own log is durable up to and with this zxid. */
  markDurable(zxid: Zxid): void {
    if (this.#phase === 'broadcast') this.#tracker.acknowledge(this.#options.self, zxid)
  }

  /** HOT. Something came from a learner, or a transfer to it made progress: it is alive. Whether it may ask for writes. */
  heartbeat(from: ConnectionId): boolean {
    const handle = this.#learners.get(from)
    if (handle !== undefined) this.#extendDeadline(handle)
    return handle?.state === 'active' && this.#phase !== 'over'
  }

  #extendDeadline(handle: LearnerProgress): void {
    const { initLimit, syncLimit } = this.#options
    if (handle.state === 'active') handle.deadline = this.#tick + syncLimit
    else if (handle.state === 'syncing') handle.deadline = this.#tick + initLimit + syncLimit
  }

  #throwUnexpectedProposal(zxid: Zxid): never {
    const expected = this.canPropose ? formatZxid(this.lastProposed + 1) : 'no proposal'
    throw new RangeError(`Expected ${expected}, got ${formatZxid(zxid)}`)
  }

  // Control

  /** Takes one input and returns what is to be done. */
  step(input: LeaderInput): readonly LeaderWork[] {
    this.#work = []
    if (this.#phase !== 'over') this.#dispatchInput(input)
    return this.#work
  }

  #dispatchInput(input: LeaderInput): void {
    switch (input.type) {
      case 'start':
        return this.#start()
      case 'accepted':
        return this.#accept(input.from)
      case 'packet':
        return this.#receivePacket(input.from, input.packet)
      case 'closed':
        return this.#removeLearner(this.#learners.get(input.from))
      case 'streamed':
        return this.#sendNewLeader(this.#learners.get(input.to))
      case 'stored':
        return input.what === 'acceptedEpoch' ? this.#sendEpoch(input.epoch) : this.#syncLearners(input.epoch)
      case 'halfTick':
        return this.#halfTick()
      case 'confirm':
        return this.#leadershipCheck.request(input.ticket)
      case 'oracle':
        this.#tracker.oracle = input.goOn
        return
      case 'transfer':
        return this.#transfer()
    }
  }

  get #tick(): number {
    return this.#halfTicks >> 1
  }

  #start(): void {
    const { self, acceptedEpoch } = this.#options
    if (this.#discovery.addServer(self, true, acceptedEpoch)) this.#chooseEpoch()
  }

  // Learners come

  /** L1 Whoever does not say who it is must not keep out those who do: the oldest of them gives way. */
  #accept(connection: ConnectionId): void {
    const { initLimit, maxLearners = 1000, maxUnidentified: maxStrangers = 100 } = this.#options
    if (this.#learners.identifiedCount >= maxLearners) {
      this.#work.push({ do: 'drop', connection, reason: `there are ${maxLearners} learners already` })
      return
    }
    const strangers = this.#learners.unidentified()
    if (strangers.length >= maxStrangers)
      this.#drop(strangers[0]!, 'too many connections do not say who they are')
    this.#learners.add(new LearnerProgress(connection, this.#tick + initLimit))
  }

  #receivePacket(from: ConnectionId, packet: QuorumPacket): void {
    const handle = this.#learners.get(from)
    if (handle === undefined) return
    this.#extendDeadline(handle)
    try {
      this.#dispatchPacket(handle, packet)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#drop(handle, error.message)
    }
  }

  #dispatchPacket(handle: LearnerProgress, packet: QuorumPacket): void {
    const { type } = packet
    if (handle.state === 'stranger') return this.#introduce(handle, packet)
    if (handle.state === 'asked' && type === PacketType.ackEpoch) return this.#receiveAckEpoch(handle, packet)
    if (handle.state === 'syncing' && type === PacketType.ack)
      return this.#receiveSyncAck(handle, packet.zxid)
    if (handle.state === 'synced' && type === PacketType.ack) return this.#noteEarlyAck(handle, packet.zxid)
    if (handle.state === 'active') return this.#receiveActive(handle, packet)
    // L5 (7.4) Nothing else is due before a learner is in step.
    this.#drop(handle, `${packetName(type)} is not due while it is ${handle.state}`)
  }

  /** L3 (8.2) Who comes, with which epoch. */
  #introduce(handle: LearnerProgress, { type, zxid, data }: QuorumPacket): void {
    if (type !== PacketType.followerInfo && type !== PacketType.observerInfo)
      return this.#drop(handle, `the first packet must say who it is, got ${packetName(type)}`)
    const info = decodeLearnerInfo(data)
    const { serverId } = info
    const acceptedEpoch = epochOf(zxid)
    const refusal = refusalReason(info, acceptedEpoch, this.#options.self, this.activeConfiguration.version)
    if (refusal !== undefined) return this.#drop(handle, refusal)
    if (this.#discovery.isEpochChosen && acceptedEpoch > this.epoch) {
      if (type === PacketType.followerInfo) this.#stepDown.noteLaterEpoch(serverId, acceptedEpoch)
      return this.#drop(
        handle,
        `it has accepted epoch ${acceptedEpoch}, after the ${this.epoch} of this leader`,
      )
    }
    handle.serverId = serverId
    for (const other of this.#learners.othersOfServer(handle))
      if (awaitsEpoch(other)) this.#drop(other, 'the same server has come again')
    handle.isObserver = type === PacketType.observerInfo
    handle.state = 'known'
    handle.deadline = Infinity
    if (this.#discovery.addServer(serverId, !handle.isObserver, acceptedEpoch)) this.#chooseEpoch()
    else if (this.#acceptedStored) this.#sendLeaderInfo(handle)
  }

  /** L6 (invariant 4) The epoch is durable here before anybody hears of it. */
  #chooseEpoch(): void {
    const { epoch } = this.#discovery
    if (epoch > MAX_LEADER_EPOCH)
      return this.#stop({ reason: `epoch ${epoch} is beyond the last one, ${MAX_LEADER_EPOCH}` })
    this.#deadline = this.#tick + this.#options.initLimit
    this.#work.push({ do: 'store', what: 'acceptedEpoch', epoch })
  }

  #sendEpoch(epoch: number): void {
    if (epoch !== this.epoch || this.#acceptedStored) return
    this.#acceptedStored = true
    if (this.#options.reconfigEnabled && this.lastSeenConfiguration.version === 0)
      this.#work.push({
        do: 'proposeConfiguration',
        configuration: this.#tracker.assignVersion(makeZxid(epoch, 0)),
      })
    for (const handle of this.#learners) if (handle.state === 'known') this.#sendLeaderInfo(handle)
    if (this.#discovery.acceptEpoch(this.#options.self)) this.#storeCurrentEpoch()
  }

  #sendLeaderInfo(handle: LearnerProgress): void {
    handle.state = 'asked'
    handle.deadline = this.#tick + this.#options.initLimit
    this.#send(handle, PacketType.leaderInfo, makeZxid(this.epoch, 0), encodeLeaderInfo())
  }

  /**
   * L8 (8.2 step 4) Who has more than I have must not follow me, as long as no quorum has found me good enough. A promise
   * that was given before, or by who does not trust its data, does not count again. A later connection of a server takes the
   * place of an earlier one here: anybody can claim to be somebody, and it must not cost a member its place.
   */
  #receiveAckEpoch(handle: LearnerProgress, { zxid, data }: QuorumPacket): void {
    const epoch = decodeAckEpoch(data)
    for (const other of this.#learners.othersOfServer(handle))
      this.#drop(other, 'the same server has come again')
    handle.lastZxid = zxid
    handle.state = 'promised'
    handle.deadline = Infinity
    if (!this.#discovery.isEpochAccepted && epoch !== -1) {
      const { currentEpoch, lastZxid } = this.#options
      if (isAhead({ epoch, zxid }, { epoch: currentEpoch, zxid: lastZxid }))
        return this.#drop(handle, `it is ahead of this leader, in epoch ${epoch} at ${formatZxid(zxid)}`)
      if (zxid !== -1 && !handle.isObserver && this.#discovery.acceptEpoch(handle.serverId))
        return this.#storeCurrentEpoch()
    }
    if (this.#currentStored) this.#sync(handle)
  }

  #storeCurrentEpoch(): void {
    this.#deadline = this.#tick + this.#options.initLimit
    this.#work.push({ do: 'store', what: 'currentEpoch', epoch: this.epoch })
  }

  /** L9 (invariant 4) My epoch is durable before anybody's history is counted, mine first. */
  #syncLearners(epoch: number): void {
    if (epoch !== this.epoch || this.#currentStored) return
    this.#currentStored = true
    this.#phase = 'synchronisation'
    this.#syncedVoters.add(this.#options.self)
    for (const handle of this.#learners) if (handle.state === 'promised') this.#sync(handle)
    this.#establish()
  }

  /** L10 (9.2, 9.4) History, then what is on its way, then NEWLEADER; all that comes later goes behind it. */
  #sync(handle: LearnerProgress): void {
    const { initLimit, syncLimit, sources } = this.#options
    const { acks: proposals } = this.#tracker
    handle.state = 'syncing'
    handle.deadline = this.#tick + initLimit + syncLimit
    proposals.forget(handle.serverId)
    handle.syncedZxid = this.lastCommitted
    const plan = planSync(handle.lastZxid, sources)
    this.#work.push({ do: 'sync', to: handle.connection, plan })
    const { pending: entries } = proposals
    if (!handle.isObserver)
      for (let i = 0; i < entries.length; i++)
        this.#send(handle, PacketType.proposal, entries.zxidAt(i), entries.payloadAt(i))
    handle.isStreaming = true
    if (plan.how !== 'snap') this.#sendNewLeader(handle)
    this.#learners.join(handle)
    const { connection, serverId: server, isObserver: observer } = handle
    this.#work.push({ do: 'joined', connection, server, observer })
  }

  /** L10 NEWLEADER waits for the end of a snapshot: what changes the tree while it is sent belongs before NEWLEADER. */
  #sendNewLeader(handle: LearnerProgress | undefined): void {
    if (handle?.isStreaming !== true) return
    handle.isStreaming = false
    // (14.6) A learner brings it into force. What I began with is committed with it; what I proposed since may never be.
    const text = printConfiguration(
      this.#phase === 'broadcast' ? this.activeConfiguration : this.lastSeenConfiguration,
    )
    this.#send(handle, PacketType.newLeader, makeZxid(this.epoch, 0), encodeConfigurationText(text))
  }

  /**
   * L11 (9.6) A learner of 3.8 may acknowledge proposals before NEWLEADER. They count once its history does, since before that
   * nothing says that what comes before them is durable there.
   */
  #receiveSyncAck(handle: LearnerProgress, zxid: Zxid): void {
    if (counterOf(zxid) !== 0) return this.#noteEarlyAck(handle, zxid)
    if (zxid !== makeZxid(this.epoch, 0) || handle.isStreaming)
      return this.#drop(
        handle,
        `it acknowledges ${formatZxid(zxid)} instead of, or before, NEWLEADER of epoch ${this.epoch}`,
      )
    handle.state = 'synced'
    handle.deadline = Infinity
    if (!handle.isObserver) this.#syncedVoters.add(handle.serverId)
    if (this.#phase === 'broadcast') this.#activateLearner(handle)
    else this.#establish()
  }

  #noteEarlyAck(handle: LearnerProgress, zxid: Zxid): void {
    if (zxid <= this.lastProposed) handle.earlyAck = Math.max(handle.earlyAck, zxid)
  }

  /** L12 (10.1, 14.6) A quorum has my history on disk: it is committed, and a configuration that I had seen with it. */
  #establish(): void {
    if (this.#phase !== 'synchronisation' || !this.#tracker.isQuorum(this.#syncedVoters)) return
    this.#phase = 'broadcast'
    const zxid = makeZxid(this.epoch, 0)
    this.#tracker.beginEpoch(this.epoch, zxid)
    const configuration = this.#tracker.proposed
    if (configuration !== undefined && this.#options.reconfigEnabled) {
      const has = (server: ServerId): Zxid => (this.#syncedVoters.has(server) ? zxid : -1)
      const designated = this.#tracker.activate(configuration, has, zxid)
      this.#work.push({ do: 'activate', configuration, designated })
    }
    if (this.#tracker.designatedLeader === undefined) this.#work.push({ do: 'lead', epoch: this.epoch, zxid })
    for (const handle of this.#learners) if (handle.state === 'synced') this.#activateLearner(handle)
    this.#leadershipCheck.advance()
  }

  #activateLearner(handle: LearnerProgress): void {
    handle.state = 'active'
    this.#extendDeadline(handle)
    this.#send(handle, PacketType.upToDate, NO_ZXID, null)
    // Its ACK of NEWLEADER says that all it was synced with is on its disk.
    if (!handle.isObserver) this.#tracker.markSynced(handle.serverId, handle.syncedZxid)
    if (handle.earlyAck !== -1) this.ack(handle.connection, handle.earlyAck)
  }

  /** (7.4) What an active learner says. */
  #receiveActive(handle: LearnerProgress, packet: QuorumPacket): void {
    const { connection, serverId: server } = handle
    switch (packet.type) {
      case PacketType.ack:
        if (this.ack(connection, packet.zxid)) return
        return this.#warn({ server, zxid: formatZxid(packet.zxid) }, UNEXPECTED_PACKET)
      case PacketType.ping:
        this.#work.push({ do: 'deliver', from: connection, server, packet })
        return this.#leadershipCheck.receivePong(handle)
      case PacketType.request:
      case PacketType.revalidate:
        this.#work.push({ do: 'deliver', from: connection, server, packet })
        return
      default:
        this.#warn({ server, packet: packetName(packet.type) }, UNEXPECTED_PACKET)
    }
  }

  /** T1 (11) Twice a tick everybody hears of me; once a tick I look who is there. */
  #halfTick(): void {
    this.#halfTicks++
    if (this.#halfTicks % 2 === 0) this.#checkLearners()
    if (this.#phase !== 'broadcast') return
    this.#leadershipCheck.pingLearners()
    this.#stepDownIfDue()
  }

  #checkLearners(): void {
    for (const handle of this.#learners) {
      const reason = overdueReason(handle, this.#tracker, this.#tick, this.#options.syncLimit)
      if (reason !== undefined) this.#drop(handle, reason)
    }
    if (this.#phase !== 'broadcast') {
      this.#continueAlone()
      if (this.#tick > this.#deadline) this.#stop({ reason: `no quorum came together for ${this.#phase}` })
      return
    }
    const servers = this.syncedVoters()
    for (const { state: phase, isObserver: observer, serverId: server } of this.#learners)
      if (!observer && (phase === 'syncing' || phase === 'synced')) servers.add(server)
    if (this.#tracker.designatedLeader === undefined && !this.#tracker.isQuorum(servers))
      this.#stop({ reason: 'too few followers are in step' })
  }

  /** B5 (2.5) The oracle may have spoken for a voter that does not come. */
  #continueAlone(): void {
    if (this.#options.oracle !== true) return
    const { self } = this.#options
    if (!this.#discovery.isEpochChosen) return this.#start()
    if (this.#acceptedStored && this.#discovery.acceptEpoch(self)) return this.#storeCurrentEpoch()
    this.#establish()
  }

  #stepDownIfDue(): void {
    const abdication = this.#stepDown.dueReason(this.#tick)
    if (abdication !== undefined) {
      const { laterEpoch: renewal } = this.#stepDown
      if (renewal > 0) this.#work.push({ do: 'store', what: 'acceptedEpoch', epoch: renewal })
      this.#stop(abdication)
    } else if (this.#stepDown.cancelExpiredTransfer(this.#tick))
      this.#warn({}, 'Leadership is not handed over: no follower caught up in time')
  }

  #transfer(): void {
    const leads = this.#phase === 'broadcast'
    const refusal = leads ? this.#stepDown.transfer(this.#tick) : 'There is no leadership to hand over'
    if (refusal === undefined) this.#stepDownIfDue()
    else this.#warn({ phase: this.#phase }, refusal)
  }

  #send({ connection }: LearnerProgress, type: number, zxid: Zxid, data: Uint8Array | null): void {
    this.#work.push({ do: 'send', to: connection, packet: { type, zxid, data, auth: null } })
  }

  #drop(handle: LearnerProgress, reason: string): void {
    this.#work.push({ do: 'drop', connection: handle.connection, reason })
    this.#removeLearner(handle)
  }

  /** L13 (7.4) Who leaves gets nothing more; what it has acknowledged stays acknowledged, since it is on its disk. */
  #removeLearner(handle: LearnerProgress | undefined): void {
    if (handle === undefined) return
    this.#learners.remove(handle)
    const { connection, serverId: server } = handle
    if (handle.hasJoined) this.#work.push({ do: 'left', connection, server })
    // The last follower may be gone, for whom the oracle speaks.
    this.#tracker.maybeCommit()
  }

  #warn(facts: object, sentence: string): void {
    this.#work.push({ do: 'warn', facts, sentence })
  }

  #stop(because: StepDownReason): void {
    this.#phase = 'over'
    this.#tracker.endEpoch()
    this.#work.push({ do: 'stop', because })
  }
}
