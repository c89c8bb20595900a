import { counterOf, epochOf, formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import { printConfiguration, type EnsembleConfiguration, type ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { Commits } from './commits.ts'
import { Discovery, isAhead, LAST_EPOCH, refusalOf } from './discovery.ts'
import { Handle, Handles, hasOnlyCome, inStepOf, isOverdue } from './handles.ts'
import type {
  Abdication,
  Broadcast,
  ConnectionId,
  LeaderInput,
  LeaderOptions,
  LeaderPhase,
  LeaderWork,
} from './leader-types.ts'
import { NO_ZXID, packetName, PacketType, type QuorumPacket } from './packets.ts'
import { decodeAckEpoch, decodeLearnerInfo, encodeConfigurationText, encodeLeaderInfo } from './payloads.ts'
import { Retirement } from './retirement.ts'
import { Rounds } from './rounds.ts'
import { planSync } from './sync-plan.ts'

const STRAY = 'A learner sent what no learner should send now; it is ignored'

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
  readonly #commits: Commits
  readonly #discovery: Discovery
  readonly #handles = new Handles()
  readonly #rounds: Rounds
  readonly #retirement: Retirement
  /** Voters whose disks have all of my history, for NEWLEADER. */
  readonly #inStep = new Set<ServerId>()
  #phase: LeaderPhase = 'discovery'
  #acceptedStored = false
  #currentStored = false
  #halfTicks = 0
  #deadline: number
  #work: LeaderWork[] = []

  constructor(options: LeaderOptions, broadcast: Broadcast) {
    this.#options = options
    this.#commits = new Commits(options, broadcast, this.#handles, () => this.#rounds.release())
    this.#rounds = new Rounds(
      options.self,
      this.#handles,
      this.#commits,
      (ticket) => broadcast.confirmed(ticket),
      (handle) => this.#send(handle, PacketType.ping, this.lastProposed, null),
    )
    this.#retirement = new Retirement(options, this.#handles, this.#commits)
    // The oracle is not asked before others had a tick to come.
    this.#discovery = new Discovery(options.self, (servers) =>
      this.#commits.isQuorum(servers, { alone: this.#tick > 0 }),
    )
    this.#deadline = options.initLimit
  }

  get phase(): LeaderPhase {
    return this.#phase
  }

  /** -1 until a quorum has agreed on one. */
  get epoch(): number {
    return this.#discovery.frozen ? this.#discovery.epoch : -1
  }

  /** Whether `propose` may be called: this server leads, is not being relieved, and the epoch has room. */
  get accepting(): boolean {
    return this.#phase === 'broadcast' && this.#retirement.isFar
  }

  get lastProposed(): Zxid {
    return this.#commits.lastProposed
  }

  get lastCommitted(): Zxid {
    return this.#commits.lastCommitted
  }

  /** How many proposals are not committed yet. */
  get outstanding(): number {
    return this.#commits.outstanding
  }

  /** The configuration in force. */
  get active(): EnsembleConfiguration {
    return this.#commits.active
  }

  /** The configuration seen last; the one in force unless a change is on its way. */
  get proposed(): EnsembleConfiguration {
    return this.#commits.proposed ?? this.#commits.active
  }

  /** Voters that are connected and in step, with this one: for the rule that a new configuration must be able to decide (14.1). */
  inStep(): Set<ServerId> {
    return inStepOf(this.#handles).add(this.#options.self)
  }

  // The hot path

  /**
   * HOT. Proposes the next transaction, whose zxid is `lastProposed` + 1, and calls `Broadcast.proposal`. The caller logs the
   * same bytes here and says so to `durable`; for a change of the configuration it first keeps that as the one seen last.
   * Throws a RangeError for any other zxid, while not `accepting`, and for a second change of the configuration.
   */
  propose(zxid: Zxid, payload: Uint8Array): void {
    if (!this.accepting || zxid !== this.#commits.lastProposed + 1) this.#refuse(zxid)
    this.#commits.propose(zxid, payload)
  }

  /** HOT. A learner's ACK of a proposal. False for one that `step` must see: it comes out of turn or names nothing proposed. */
  ack(from: ConnectionId, zxid: Zxid): boolean {
    const handle = this.#handles.get(from)
    if (handle === undefined || handle.phase !== 'active' || zxid > this.#commits.lastProposed) return false
    this.#hear(handle)
    if (!handle.observer) this.#commits.acknowledge(handle.server, zxid)
    return true
  }

  /** HOT. The leader's own log is durable up to and with this zxid. */
  durable(zxid: Zxid): void {
    if (this.#phase === 'broadcast') this.#commits.acknowledge(this.#options.self, zxid)
  }

  /** HOT. Something came from a learner, or a transfer to it made progress: it is alive. Whether it may ask for writes. */
  heard(from: ConnectionId): boolean {
    const handle = this.#handles.get(from)
    if (handle !== undefined) this.#hear(handle)
    return handle?.phase === 'active' && this.#phase !== 'over'
  }

  #hear(handle: Handle): void {
    const { initLimit, syncLimit } = this.#options
    if (handle.phase === 'active') handle.deadline = this.#tick + syncLimit
    else if (handle.phase === 'syncing') handle.deadline = this.#tick + initLimit + syncLimit
  }

  #refuse(zxid: Zxid): never {
    const expected = this.accepting ? formatZxid(this.lastProposed + 1) : 'no proposal'
    throw new RangeError(`Expected ${expected}, got ${formatZxid(zxid)}`)
  }

  // Control

  /** Takes one input and returns what is to be done. */
  step(input: LeaderInput): readonly LeaderWork[] {
    this.#work = []
    if (this.#phase !== 'over') this.#take(input)
    return this.#work
  }

  #take(input: LeaderInput): void {
    switch (input.type) {
      case 'start':
        return this.#start()
      case 'accepted':
        return this.#accept(input.from)
      case 'packet':
        return this.#read(input.from, input.packet)
      case 'closed':
        return this.#forget(this.#handles.get(input.from))
      case 'streamed':
        return this.#streamed(this.#handles.get(input.to))
      case 'stored':
        return input.what === 'acceptedEpoch'
          ? this.#askLearners(input.epoch)
          : this.#syncLearners(input.epoch)
      case 'halfTick':
        return this.#halfTick()
      case 'confirm':
        return this.#rounds.ask(input.ticket)
      case 'oracle':
        this.#commits.oracle = input.goOn
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
    if (this.#discovery.connect(self, true, acceptedEpoch)) this.#freeze()
  }

  // Learners come

  /** L1 Whoever does not say who it is must not keep out those who do: the oldest of them gives way. */
  #accept(connection: ConnectionId): void {
    const { initLimit, maxLearners = 1000, maxStrangers = 100 } = this.#options
    if (this.#handles.learners >= maxLearners) {
      this.#work.push({ do: 'drop', connection, reason: `there are ${maxLearners} learners already` })
      return
    }
    const strangers = this.#handles.strangers()
    if (strangers.length >= maxStrangers)
      this.#drop(strangers[0]!, 'too many connections do not say who they are')
    this.#handles.add(new Handle(connection, this.#tick + initLimit))
  }

  #read(from: ConnectionId, packet: QuorumPacket): void {
    const handle = this.#handles.get(from)
    if (handle === undefined) return
    this.#hear(handle)
    try {
      this.#dispatch(handle, packet)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#drop(handle, error.message)
    }
  }

  #dispatch(handle: Handle, packet: QuorumPacket): void {
    const { type } = packet
    if (handle.phase === 'stranger') return this.#introduce(handle, packet)
    if (handle.phase === 'asked' && type === PacketType.ackEpoch) return this.#promised(handle, packet)
    if (handle.phase === 'syncing' && type === PacketType.ack) return this.#ackSync(handle, packet.zxid)
    if (handle.phase === 'synced' && type === PacketType.ack) return this.#noteEarly(handle, packet.zxid)
    if (handle.phase === 'active') return this.#serve(handle, packet)
    // L5 (7.4) Nothing else is due before a learner is in step.
    this.#drop(handle, `${packetName(type)} is not due while it is ${handle.phase}`)
  }

  /** L3 (8.2) Who comes, with which epoch. */
  #introduce(handle: Handle, { type, zxid, data }: QuorumPacket): void {
    if (type !== PacketType.followerInfo && type !== PacketType.observerInfo)
      return this.#drop(handle, `the first packet must say who it is, got ${packetName(type)}`)
    const info = decodeLearnerInfo(data)
    const { serverId } = info
    const acceptedEpoch = epochOf(zxid)
    const refusal = refusalOf(info, acceptedEpoch, this.#options.self, this.active.version)
    if (refusal !== undefined) return this.#drop(handle, refusal)
    if (this.#discovery.frozen && acceptedEpoch > this.epoch) {
      if (type === PacketType.followerInfo) this.#retirement.outrun(serverId, acceptedEpoch)
      return this.#drop(
        handle,
        `it has accepted epoch ${acceptedEpoch}, after the ${this.epoch} of this leader`,
      )
    }
    handle.server = serverId
    for (const other of this.#handles.formerOf(handle))
      if (hasOnlyCome(other)) this.#drop(other, 'the same server has come again')
    handle.observer = type === PacketType.observerInfo
    handle.phase = 'known'
    handle.deadline = Infinity
    if (this.#discovery.connect(serverId, !handle.observer, acceptedEpoch)) this.#freeze()
    else if (this.#acceptedStored) this.#ask(handle)
  }

  /** L6 (invariant 4) The epoch is durable here before anybody hears of it. */
  #freeze(): void {
    const { epoch } = this.#discovery
    if (epoch > LAST_EPOCH)
      return this.#stop({ reason: `epoch ${epoch} is beyond the last one, ${LAST_EPOCH}` })
    this.#deadline = this.#tick + this.#options.initLimit
    this.#work.push({ do: 'store', what: 'acceptedEpoch', epoch })
  }

  #askLearners(epoch: number): void {
    if (epoch !== this.epoch || this.#acceptedStored) return
    this.#acceptedStored = true
    if (this.#options.reconfigEnabled && this.proposed.version === 0)
      this.#work.push({ do: 'proposeConfiguration', configuration: this.#commits.label(makeZxid(epoch, 0)) })
    for (const handle of this.#handles) if (handle.phase === 'known') this.#ask(handle)
    if (this.#discovery.promise(this.#options.self)) this.#elected()
  }

  #ask(handle: Handle): void {
    handle.phase = 'asked'
    handle.deadline = this.#tick + this.#options.initLimit
    this.#send(handle, PacketType.leaderInfo, makeZxid(this.epoch, 0), encodeLeaderInfo())
  }

  /**
   * L8 (8.2 step 4) Who has more than I have must not follow me, as long as no quorum has found me good enough. A promise
   * that was given before, or by who does not trust its data, does not count again. A later connection of a server takes the
   * place of an earlier one here: anybody can claim to be somebody, and it must not cost a member its place.
   */
  #promised(handle: Handle, { zxid, data }: QuorumPacket): void {
    const epoch = decodeAckEpoch(data)
    for (const other of this.#handles.formerOf(handle)) this.#drop(other, 'the same server has come again')
    handle.zxid = zxid
    handle.phase = 'promised'
    handle.deadline = Infinity
    if (!this.#discovery.elected && epoch !== -1) {
      const { currentEpoch, lastZxid } = this.#options
      if (isAhead({ epoch, zxid }, { epoch: currentEpoch, zxid: lastZxid }))
        return this.#drop(handle, `it is ahead of this leader, in epoch ${epoch} at ${formatZxid(zxid)}`)
      if (zxid !== -1 && !handle.observer && this.#discovery.promise(handle.server)) return this.#elected()
    }
    if (this.#currentStored) this.#sync(handle)
  }

  #elected(): void {
    this.#deadline = this.#tick + this.#options.initLimit
    this.#work.push({ do: 'store', what: 'currentEpoch', epoch: this.epoch })
  }

  /** L9 (invariant 4) My epoch is durable before anybody's history is counted, mine first. */
  #syncLearners(epoch: number): void {
    if (epoch !== this.epoch || this.#currentStored) return
    this.#currentStored = true
    this.#phase = 'synchronisation'
    this.#inStep.add(this.#options.self)
    for (const handle of this.#handles) if (handle.phase === 'promised') this.#sync(handle)
    this.#establish()
  }

  /** L10 (9.2, 9.4) History, then what is on its way, then NEWLEADER; all that comes later goes behind it. */
  #sync(handle: Handle): void {
    const { initLimit, syncLimit, sources } = this.#options
    const { proposals } = this.#commits
    handle.phase = 'syncing'
    handle.deadline = this.#tick + initLimit + syncLimit
    proposals.forget(handle.server)
    handle.synced = this.lastCommitted
    const plan = planSync(handle.zxid, sources)
    this.#work.push({ do: 'sync', to: handle.connection, plan })
    const { entries } = proposals
    if (!handle.observer)
      for (let i = 0; i < entries.length; i++)
        this.#send(handle, PacketType.proposal, entries.zxidAt(i), entries.payloadAt(i))
    handle.streaming = true
    if (plan.how !== 'snap') this.#streamed(handle)
    this.#handles.join(handle)
    const { connection, server, observer } = handle
    this.#work.push({ do: 'joined', connection, server, observer })
  }

  /** L10 NEWLEADER waits for the end of a snapshot: what changes the tree while it is sent belongs before NEWLEADER. */
  #streamed(handle: Handle | undefined): void {
    if (handle?.streaming !== true) return
    handle.streaming = false
    // (14.6) A learner brings it into force. What I began with is committed with it; what I proposed since may never be.
    const text = printConfiguration(this.#phase === 'broadcast' ? this.active : this.proposed)
    this.#send(handle, PacketType.newLeader, makeZxid(this.epoch, 0), encodeConfigurationText(text))
  }

  /**
   * L11 (9.6) A learner of 3.8 may acknowledge proposals before NEWLEADER. They count once its history does, since before that
   * nothing says that what comes before them is durable there.
   */
  #ackSync(handle: Handle, zxid: Zxid): void {
    if (counterOf(zxid) !== 0) return this.#noteEarly(handle, zxid)
    if (zxid !== makeZxid(this.epoch, 0) || handle.streaming)
      return this.#drop(
        handle,
        `it acknowledges ${formatZxid(zxid)} instead of, or before, NEWLEADER of epoch ${this.epoch}`,
      )
    handle.phase = 'synced'
    handle.deadline = Infinity
    if (!handle.observer) this.#inStep.add(handle.server)
    if (this.#phase === 'broadcast') this.#welcome(handle)
    else this.#establish()
  }

  #noteEarly(handle: Handle, zxid: Zxid): void {
    if (zxid <= this.lastProposed) handle.earlyAck = Math.max(handle.earlyAck, zxid)
  }

  /** L12 (10.1, 14.6) A quorum has my history on disk: it is committed, and a configuration that I had seen with it. */
  #establish(): void {
    if (this.#phase !== 'synchronisation' || !this.#commits.isQuorum(this.#inStep)) return
    this.#phase = 'broadcast'
    const zxid = makeZxid(this.epoch, 0)
    this.#commits.open(this.epoch, zxid)
    const configuration = this.#commits.proposed
    if (configuration !== undefined && this.#options.reconfigEnabled) {
      const has = (server: ServerId): Zxid => (this.#inStep.has(server) ? zxid : -1)
      const designated = this.#commits.adopt(configuration, has, zxid)
      this.#work.push({ do: 'activate', configuration, designated })
    }
    if (this.#commits.designated === undefined) this.#work.push({ do: 'lead', epoch: this.epoch, zxid })
    for (const handle of this.#handles) if (handle.phase === 'synced') this.#welcome(handle)
    this.#rounds.advance()
  }

  #welcome(handle: Handle): void {
    handle.phase = 'active'
    this.#hear(handle)
    this.#send(handle, PacketType.upToDate, NO_ZXID, null)
    // Its ACK of NEWLEADER says that all it was synced with is on its disk.
    if (!handle.observer) this.#commits.vouch(handle.server, handle.synced)
    if (handle.earlyAck !== -1) this.ack(handle.connection, handle.earlyAck)
  }

  /** (7.4) What an active learner says. */
  #serve(handle: Handle, packet: QuorumPacket): void {
    const { connection, server } = handle
    switch (packet.type) {
      case PacketType.ack:
        if (this.ack(connection, packet.zxid)) return
        return this.#warn({ server, zxid: formatZxid(packet.zxid) }, STRAY)
      case PacketType.ping:
        this.#work.push({ do: 'deliver', from: connection, server, packet })
        return this.#rounds.answered(handle)
      case PacketType.request:
      case PacketType.revalidate:
        this.#work.push({ do: 'deliver', from: connection, server, packet })
        return
      default:
        this.#warn({ server, packet: packetName(packet.type) }, STRAY)
    }
  }

  /** T1 (11) Twice a tick everybody hears of me; once a tick I look who is there. */
  #halfTick(): void {
    this.#halfTicks++
    if (this.#halfTicks % 2 === 0) this.#lookAround()
    if (this.#phase !== 'broadcast') return
    this.#rounds.pingAll()
    this.#leaveWhenDue()
  }

  #lookAround(): void {
    for (const handle of this.#handles) {
      const reason = isOverdue(handle, this.#commits, this.#tick, this.#options.syncLimit)
      if (reason !== undefined) this.#drop(handle, reason)
    }
    if (this.#phase !== 'broadcast') {
      this.#goOnAlone()
      if (this.#tick > this.#deadline) this.#stop({ reason: `no quorum came together for ${this.#phase}` })
      return
    }
    const servers = this.inStep()
    for (const { phase, observer, server } of this.#handles)
      if (!observer && (phase === 'syncing' || phase === 'synced')) servers.add(server)
    if (this.#commits.designated === undefined && !this.#commits.isQuorum(servers))
      this.#stop({ reason: 'too few followers are in step' })
  }

  /** B5 (2.5) The oracle may have spoken for a voter that does not come. */
  #goOnAlone(): void {
    if (this.#options.oracle !== true) return
    const { self } = this.#options
    if (!this.#discovery.frozen) return this.#start()
    if (this.#acceptedStored && this.#discovery.promise(self)) return this.#elected()
    this.#establish()
  }

  #leaveWhenDue(): void {
    const abdication = this.#retirement.due(this.#tick)
    if (abdication !== undefined) {
      const { renewal } = this.#retirement
      if (renewal > 0) this.#work.push({ do: 'store', what: 'acceptedEpoch', epoch: renewal })
      this.#stop(abdication)
    } else if (this.#retirement.gaveUp(this.#tick))
      this.#warn({}, 'Leadership is not handed over: no follower caught up in time')
  }

  #transfer(): void {
    const leads = this.#phase === 'broadcast'
    const refusal = leads ? this.#retirement.transfer(this.#tick) : 'There is no leadership to hand over'
    if (refusal === undefined) this.#leaveWhenDue()
    else this.#warn({ phase: this.#phase }, refusal)
  }

  #send({ connection }: Handle, type: number, zxid: Zxid, data: Uint8Array | null): void {
    this.#work.push({ do: 'send', to: connection, packet: { type, zxid, data, auth: null } })
  }

  #drop(handle: Handle, reason: string): void {
    this.#work.push({ do: 'drop', connection: handle.connection, reason })
    this.#forget(handle)
  }

  /** L13 (7.4) Who leaves gets nothing more; what it has acknowledged stays acknowledged, since it is on its disk. */
  #forget(handle: Handle | undefined): void {
    if (handle === undefined) return
    this.#handles.remove(handle)
    const { connection, server } = handle
    if (handle.joined) this.#work.push({ do: 'left', connection, server })
    // The last follower may be gone, for whom the oracle speaks.
    this.#commits.commit()
  }

  #warn(facts: object, sentence: string): void {
    this.#work.push({ do: 'warn', facts, sentence })
  }

  #stop(because: Abdication): void {
    this.#phase = 'over'
    this.#commits.close()
    this.#work.push({ do: 'stop', because })
  }
}
