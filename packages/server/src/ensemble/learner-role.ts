import { counterOf, epochOf, formatZxid, makeZxid, ProtocolError, Reader } from '@zabra/protocol'
import type { Cancel, Connection } from '@zabra/runtime'
import type { ClientChannel } from '../connections/client-channel.ts'
import type { HealthCheck } from '../admin/index.ts'
import type { Histogram } from '../core/histogram.ts'
import { UNTRUSTED_ZXID } from '../core/election/index.ts'
import { hasClusterId, isSameCluster, type ServerId } from '../core/quorum/index.ts'
import { LearnerSessions } from '../core/sessions/index.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import {
  decodeLeaderReportPacket,
  decodeMemberExtension,
  encodeLearnerReportPacket,
  encodeMemberExtension,
  decodeRevalidationReply,
  decodeSnapshotInfo,
  decodeStopPermitAnswer,
  encodeRevalidation,
  encodeStopPermitRequest,
  LEADER_INFO_BYTES,
  Learner,
  NO_ZXID,
  packetName,
  PacketSplitter,
  PacketType,
  withExtension,
  type LearnerInput,
  type LearnerReportPacket,
  type LearnerWork,
  type MemberExtension,
  type QuorumPacket,
  type ReportOfMember,
} from '../core/zab/index.ts'
import { decodeTransactions, DivergenceError } from '../persistence/index.ts'
import { LearnerPipeline, type LeaderChannel } from '../pipeline/index.ts'
import { connectToMaster, type MasterConnection } from './connect-to-master.ts'
import type { ActiveRole, MemberContext, RoleEvents, RoleExit } from './context.ts'
import { Durability } from './durability.ts'
import { FeatureRecipient } from './feature-reports.ts'
import { ForwardedSessions } from './forwarded-sessions.ts'
import { LearnerFlowControl } from './learner-flow-control.ts'
import { Mailbox, SerialExecutor } from './mailbox.ts'
import type { ReportChannel } from './member-reports.ts'
import { ObserverMasterRole } from './observer-master-role.ts'
import { PeerConnection } from './peer-connection.ts'
import { ReadScheduler } from './read-scheduler.ts'
import { mostReported, takeReport } from './session-reports.ts'
import { activateConfiguration } from './reconfigure.ts'
import { RoleClients } from './role-clients.ts'
import { SecretRecipient } from './secret-sharing.ts'
import type { StopPermitChannel } from './stop-permits.ts'

/** The most bytes of requests and acknowledgements that the leader has not read. */
const MAX_UNSENT_BYTES = 128 << 20
/** Where the time stands in an encoded transaction: after session id, cxid and zxid. */
const TIME_OFFSET = 20

/** Returns the time of the leader in a transaction, in milliseconds since 1970. */
const timeOf = ({ buffer, byteOffset }: Uint8Array): number =>
  Number(new DataView(buffer, byteOffset).getBigInt64(TIME_OFFSET))

/**
 * The longest packet. The end of a session with very many ephemeral nodes is longer than any request. A leader queues no more than this
 * for a learner; memory is allocated only for bytes that have arrived.
 */
const MAX_PACKET_BYTES = 128 << 20

/** Milliseconds of one turn of the event loop for the history that a leader sends, which is applied as it is read. */
const SYNC_TURN_MS = 5

/** Ticks within which a learner that is ready has heard its leader. */
const READY_TICKS = 2

/** The leader of a learner, and how to follow it. */
export interface LearnerTarget {
  readonly leader: ServerId
  readonly isObserver: boolean
  /** The epoch of the leader that a voter follows without a vote, since it has accepted a later one (quorum-protocol 8.3). */
  readonly nonVotingEpoch: number | undefined
}

/**
 * Runs the role of a follower or observer: performs the work that the state machine `Learner` requests, in order. The order of disk
 * and network is that of `Durability`.
 */
export class LearnerRole implements ActiveRole {
  readonly #context: MemberContext
  readonly #events: RoleEvents
  readonly #leaderId: ServerId
  readonly #isObserver: boolean
  /** The epoch of the leader that it follows without a vote; undefined for other learners. */
  readonly nonVotingEpoch: number | undefined
  readonly #mailbox: Mailbox<LearnerInput, LearnerWork>
  readonly #learner: Learner
  readonly #executor: SerialExecutor
  /** Answers PINGs in their order, beside the other work: acknowledgements do not wait for a long report. */
  readonly #answers: SerialExecutor
  readonly #durability: Durability
  readonly #dialing = new AbortController()
  #connection: PeerConnection | undefined
  /** Undefined where members share no secret of sessions. */
  #secret: SecretRecipient | undefined
  readonly #levels: FeatureRecipient
  /** Whether the secret of sessions may be shared with the leader, which has proved who it is. */
  #sharesSecret = false
  /** Passes requests to stop to the leader; undefined before it has said that it is no member of Apache ZooKeeper. */
  #stopPermits: StopPermitChannel | undefined
  /** Asks the learner master for reports; undefined before it has brought this member up to date, and for one of Apache ZooKeeper. */
  #reports: ReportChannel | undefined
  /** What the leader says of itself; undefined for one of Apache ZooKeeper. */
  #leaderSaid: MemberExtension | undefined
  #splitter: PacketSplitter | undefined
  #flowControl: LearnerFlowControl | undefined
  /** Paces what the leader sends until this learner serves. */
  #reads: ReadScheduler | undefined
  /** Reads the transactions that are logged. */
  readonly #reader = new Reader()
  /** Decoded transactions that are logged and not applied yet, in log order; undefined for a large one, which is decoded when it is applied. */
  readonly #decoded = new RingBuffer<LoggedTxn | undefined>(undefined)
  /** Whether reading is paused until no work is in progress. */
  #awaitsWork = false
  /** Whether a snapshot has ended, so that the splitter continues with packets. */
  #isSnapshotComplete = false
  #sessions: LearnerSessions | undefined
  #clients: RoleClients<LearnerPipeline<ClientChannel>> | undefined
  /** The learner master: the leader, or a follower with `observerMasterPort`. */
  #master: ServerId
  /** The sessions of observers of this follower that are not believed. */
  readonly #forwardedSessions: ForwardedSessions
  /** The observers of this follower. */
  #observers: ObserverMasterRole | undefined
  /** Settles when an earlier one has closed its port. */
  #observersEnded: Promise<void> = Promise.resolve()
  #epoch = 0
  #cancelTick: Cancel = () => {}
  #hasExited = false
  /** When the role began, on the monotonic clock. */
  #beganAt = 0
  /** How the leader syncs this server, such as SNAP, and the bytes of a snapshot so far. */
  #syncKind = ''
  #snapshotBytes = 0
  /** The nodes of the snapshot, where the leader says how many it has. */
  #snapshotNodes: number | undefined
  /** The last transaction that the leader has committed, as far as this server knows: now, half a tick ago, and a tick ago. */
  #lastCommitted: Zxid = 0
  #committedHalfATickAgo: Zxid = 0
  #committedATickAgo: Zxid = 0
  /** Whether everything is applied that the leader had committed when this server began to serve. */
  #hasCaughtUp = false
  /** Whether its clients were disconnected before the end of the role. */
  #isCutOff = false
  /** The transaction whose acknowledgement is measured, one at a time, and the time of the leader in it. */
  #awaitsAck: { readonly zxid: Zxid; readonly time: number } | undefined
  /** Whether the leader has sent anything. */
  #hasReceived = false
  /** Whether it was synced with the leader. */
  isSynced = false

  constructor(
    context: MemberContext,
    { leader, isObserver, nonVotingEpoch }: LearnerTarget,
    events: RoleEvents,
  ) {
    this.#context = context
    this.#events = events
    this.#forwardedSessions = new ForwardedSessions(context)
    this.#leaderId = this.#master = leader
    this.#isObserver = isObserver || nonVotingEpoch !== undefined
    this.nonVotingEpoch = nonVotingEpoch
    const { settings, membership, database } = context
    context.stats.ensemble.clockAhead.clear()
    this.#learner = new Learner({
      self: membership.self,
      observer: this.#isObserver,
      ...(nonVotingEpoch === undefined ? {} : { nonVotingEpoch }),
      acceptedEpoch: database.epochs.accepted,
      currentEpoch: database.epochs.current,
      lastZxid: database.isEligibleToVote ? database.lastZxid : UNTRUSTED_ZXID,
      needsFullSync: database.isEligibleToVote && database.isFullSyncRequested,
      configVersion: membership.active.version,
      initLimit: settings.initLimit,
      syncLimit: settings.syncLimit,
    })
    this.#levels = new FeatureRecipient(context, (data) =>
      this.#connection!.send(PacketType.featureLevel, NO_ZXID, data),
    )
    this.#durability = new Durability(context, {
      durable: (zxid) => this.#mailbox.run(() => this.#learner.markDurable(zxid)),
      diskFull: (_, { message: reason }) => this.#leave({ reason, electionDelayMs: settings.tickTimeMs }),
      spaceAvailable() {},
    })
    this.#executor = new SerialExecutor({
      resume: (action) => this.#mailbox.run(action),
      failed: (error) => {
        if (error instanceof ProtocolError) this.#leave({ reason: error.message })
        else context.failed(error)
      },
    })
    this.#answers = new SerialExecutor({
      resume: (action) => this.#mailbox.run(action),
      failed: context.failed,
    })
    this.#mailbox = new Mailbox({
      machine: this.#learner,
      perform: (work) => this.#performInOrder(work),
      failed: context.failed,
      runInBatch: (action) =>
        this.#clients === undefined ? action() : this.#clients.service.runTurn(action),
    })
  }

  get leader(): ServerId {
    return this.#leaderId
  }

  /** Whether the leader runs Apache ZooKeeper; undefined before it is known, and where another member is between. */
  get isLeaderForeign(): boolean | undefined {
    return this.isSynced && this.#master === this.#leaderId ? this.#leaderSaid === undefined : undefined
  }

  /** Committed transactions that this server knows of and has not applied. */
  get zxidLag(): number {
    const { lastZxid } = this.#context.database.tree
    // The first transactions of an epoch follow one of an earlier epoch, whose zxid is far below.
    const isNewEpoch = epochOf(this.#lastCommitted) > epochOf(lastZxid)
    return isNewEpoch ? counterOf(this.#lastCommitted) : Math.max(0, this.#lastCommitted - lastZxid)
  }

  checks(): readonly HealthCheck[] {
    if (this.#clients === undefined) return [{ name: 'sync', isOk: false, detail: this.#syncProgress() }]
    const { platform, settings, database } = this.#context
    const limitMs = READY_TICKS * settings.tickTimeMs
    const silentMs = platform.clock.monotonic() - this.#connection!.lastReceivedAt
    const isHeard = silentMs <= limitMs
    const { lastZxid } = database.tree
    const isApplied = lastZxid >= this.#committedATickAgo
    const isInStep = isApplied && this.#hasCaughtUp && !this.#isCutOff
    const lack = this.#isCutOff
      ? 'has disconnected its clients, and ends its role once its disk has done what came before'
      : isApplied
        ? 'has not applied all that was committed before it began to serve'
        : `${formatZxid(this.#committedATickAgo)} was committed over a tick ago`
    return [
      {
        name: 'leader',
        isOk: isHeard,
        detail: isHeard ? 'ok' : `no packet for ${seconds(silentMs)} (limit ${seconds(limitMs)})`,
      },
      {
        name: 'in-step',
        isOk: isInStep,
        detail: isInStep ? 'ok' : `applied ${formatZxid(lastZxid)}; ${lack}`,
      },
    ]
  }

  #syncProgress(): string {
    const leader = `server ${this.#master}`
    if (this.#connection === undefined) return `connects to ${leader}`
    if (this.#syncKind === '') return `agrees on an epoch with ${leader}`
    const bytes = this.#snapshotBytes === 0 ? '' : `, ${this.#snapshotBytes} bytes so far`
    return `${this.#syncKind.toUpperCase()}${this.#snapshotShare} from ${leader}${bytes}`
  }

  /** The share of the nodes that were received, such as ` 37 %`; below 100 %, since transactions follow. */
  get #snapshotShare(): string {
    if (this.#snapshotNodes === undefined) return ''
    const share = this.#context.database.receivedNodes / this.#snapshotNodes
    return ` ${Math.min(99, Math.floor(share * 100))} %`
  }

  async begin(): Promise<void> {
    this.#beganAt = this.#context.platform.clock.monotonic()
    try {
      // A learner master may be established in another epoch than its leader was elected in.
      const isObserver = this.#isObserver && this.nonVotingEpoch === undefined
      const target = { leader: this.#leaderId, isObserver, signal: this.#dialing.signal }
      this.#onConnected(await connectToMaster(this.#context, target))
    } catch (error) {
      this.#leave({ reason: error instanceof Error ? error.message : String(error) })
    }
  }

  async finishRequests(): Promise<void> {
    await this.#clients?.finish()
  }

  async end(reason = 'Closed: this server does not follow any more'): Promise<void> {
    this.#hasExited = true
    this.#dialing.abort()
    this.#mailbox.stop()
    this.#cancelTick()
    void this.#answers.stop()
    const closed = this.#clients?.end(reason)
    this.#context.stopPermit.disconnect(this.#stopPermits)
    this.#context.reports.disconnect(this.#reports)
    this.#connection?.close()
    this.#durability.snapshotBytes.end(new Error('The role has ended'))
    await this.#observers?.end()
    await this.#observersEnded
    await closed
    // Work on the disk that has begun ends before the next role reads the disk.
    await this.#executor.stop()
  }

  #leave(exit: RoleExit): void {
    if (this.#hasExited) return
    this.#hasExited = true
    // Nothing is appended or acknowledged from now on.
    this.#mailbox.stop()
    this.#events.exited(exit)
  }

  // Connection

  #onConnected({ connection, master }: MasterConnection): void {
    const { settings, platform } = this.#context
    if (this.#hasExited) return discard(connection)
    this.#master = master
    const splitter = new PacketSplitter({
      maxData: MAX_PACKET_BYTES,
      packet: (type, zxid, data) => {
        if (type === PacketType.sessionSecret && this.#sharesSecret) return this.#secret!.receive(data)
        if (type === PacketType.stopPermit && this.#stopPermits !== undefined)
          return this.#context.stopPermit.answered(decodeStopPermitAnswer(data))
        if (type === PacketType.clusterId) return this.#onClusterId(data)
        if (type === PacketType.featureLevel && this.#leaderSaid?.features !== undefined)
          return this.#onFeatureLevel(data)
        if (type === PacketType.memberReport && this.#leaderSaid !== undefined)
          return this.#onMemberReport(data)
        if (type === PacketType.leaderInfo) this.#onLeaderInfo(data)
        if (this.#clients === undefined) this.#receiveBeforeServing(type, zxid, data)
        else this.#learner.receive(type, zxid, data)
      },
      raw: (bytes) => this.#onSnapshotBytes(bytes),
    })
    this.#splitter = splitter
    this.#connection = new PeerConnection({
      connection,
      clock: platform.clock,
      maxUnsentBytes: MAX_UNSENT_BYTES,
      received: (chunk) => this.#onReceived(chunk),
      lost: (reason) => {
        splitter.stop()
        // The server that accepted the connection may not be leading yet.
        if (!this.#hasReceived)
          this.#leave({ reason: `${reason} before the leader sent anything`, isLeaderSilent: true })
        this.#durability.snapshotBytes.end(new Error(reason))
        this.#mailbox.run(() => this.#mailbox.enqueue({ type: 'closed' }))
      },
    })
    this.#reads = new ReadScheduler(platform.clock, () => SYNC_TURN_MS, {
      pause: () => this.#pausePackets(),
      resume: () => this.#resumePackets(),
    })
    this.#flowControl = new LearnerFlowControl({
      clock: platform.clock,
      connection: this.#connection,
      pendingBytes: () => this.#durability.pendingBytes,
      unapplied: () => this.#clients?.pipeline.transactions ?? 0,
      flush: () => this.#durability.log.flush(),
    })
    this.#connection.setReadTimeout(settings.initLimit * settings.tickTimeMs)
    const { sharedSecret, security } = this.#context
    if (sharedSecret !== undefined) {
      this.#sharesSecret = security.isAuthenticated(connection)
      this.#secret = new SecretRecipient({ ...this.#context, sharedSecret }, (data) =>
        this.#connection!.send(PacketType.sessionSecret, NO_ZXID, data),
      )
    }
    this.#scheduleTick(platform.clock.monotonic())
    this.#mailbox.post({ type: 'connected' })
  }

  /** Takes what the leader says of itself, before this member agrees on the epoch. */
  #onLeaderInfo(data: Uint8Array | null): void {
    const said = decodeMemberExtension(data, LEADER_INFO_BYTES)
    const { cluster, features, stopPermit } = this.#context
    // The leader is one that the configuration or a quorum of votes names, at its address.
    const reason = cluster.refusalOf(this.#master, said, true) ?? features.refusalOfLeader(this.#master, said)
    if (reason !== undefined) return this.#leave({ reason })
    if (said === undefined || this.#stopPermits !== undefined) return
    this.#leaderSaid = said
    const { features: levels } = said
    if (levels !== undefined) this.#executor.add(() => this.#levels.introduced(levels))
    this.#executor.add(() => cluster.join(said))
    this.#stopPermits = {
      send: (request) =>
        this.#connection!.send(PacketType.stopPermit, NO_ZXID, encodeStopPermitRequest(request)),
    }
    if (this.#master === this.#leaderId) stopPermit.connect(this.#stopPermits)
  }

  /**
   * Takes the id of the leader once a quorum has it, or once a leader that named none in LEADERINFO has decided on one, and says that it
   * is stored. Ignores another id: only that of LEADERINFO is compared with the own one.
   */
  #onClusterId(data: Uint8Array | null): void {
    const said = decodeMemberExtension(data)
    const introduced = this.#leaderSaid
    if (said === undefined || introduced === undefined) return
    const isLate = !hasClusterId(introduced.cluster)
    if (!isLate && !isSameCluster(said.cluster, introduced.cluster)) return
    const reason = this.#context.cluster.refusalOf(this.#master, said, true)
    if (reason !== undefined) return this.#leave({ reason })
    this.#executor.add(async () => {
      const { cluster } = this.#context
      await cluster.follow(said)
      this.#leaderSaid = { ...introduced, cluster: said.cluster }
      const extension = encodeMemberExtension(cluster.extension(this.#sharesSecret))
      if (said.cluster.isProposed) return this.#connection?.send(PacketType.clusterId, NO_ZXID, extension)
      // Observers that connect while the id is stored get the proposed one first.
      this.#observers?.clusterConfirmed(said)
    })
  }

  /** Takes the feature levels of the leader, which have changed. */
  #onFeatureLevel(data: Uint8Array | null): void {
    const features = this.#levels.receive(data)
    const said = { ...this.#leaderSaid!, features }
    const reason = this.#context.features.refusalOfLeader(this.#master, said)
    if (reason !== undefined) return this.#leave({ reason })
    this.#executor.add(() => this.#levels.follow())
  }

  #onMemberReport(data: Uint8Array | null): void {
    const packet = decodeLeaderReportPacket(data)
    const { reports } = this.#context
    if (packet?.kind === 'answer') return reports.answered(packet)
    if (packet === undefined) return
    const { number } = packet
    const send = (members: readonly ReportOfMember[]): void =>
      this.#sendReport({ kind: 'report', number, members })
    if (this.#observers === undefined) reports.report(send)
    else this.#observers.collectReports(send)
  }

  #sendReport(packet: LearnerReportPacket): void {
    this.#connection!.send(PacketType.memberReport, NO_ZXID, encodeLearnerReportPacket(packet))
  }

  /** Logs how the leader syncs this server. */
  #logSync(type: number, zxid: Zxid): void {
    if (type !== PacketType.diff && type !== PacketType.trunc && type !== PacketType.snap) return
    const facts = { leader: this.#master, how: packetName(type), zxid: formatZxid(zxid) }
    this.#syncKind = packetName(type)
    this.#context.platform.logger.info(facts, 'The leader brings this server up to date')
  }

  #onReceived(chunk: Uint8Array): void {
    this.#hasReceived = true
    this.#mailbox.run(() => {
      this.#learner.heartbeat()
      this.#splitter!.push(chunk)
    })
    this.#flowControl!.check()
  }

  /** Receives a packet and does its work at once, so that the time of it counts for the share of the turn. */
  #receiveBeforeServing(type: number, zxid: Zxid, data: Uint8Array | null): void {
    this.#logSync(type, zxid)
    if (type === PacketType.snap) this.#snapshotNodes = decodeSnapshotInfo(data)
    this.#learner.receive(type, zxid, data)
    this.#mailbox.drain()
    this.#reads!.count(data?.length ?? 0)
    // A snapshot is read by the work itself.
    if (type !== PacketType.snap && !this.#executor.isIdle && !this.#awaitsWork) {
      this.#awaitsWork = true
      this.#pausePackets()
      this.#resumeWhenIdle()
    }
  }

  /** History that arrived while the disk works, for example on a truncation, would be held in memory and then applied in one turn. */
  #resumeWhenIdle(): void {
    this.#executor.add(() =>
      this.#context.platform.clock.immediate(() => {
        if (!this.#executor.isIdle) return this.#resumeWhenIdle()
        this.#awaitsWork = false
        this.#resumePackets()
      }),
    )
  }

  #pausePackets(): void {
    this.#splitter!.pause()
    this.#connection!.pause()
  }

  #resumePackets(): void {
    const connection = this.#connection!
    connection.resume()
    if (connection.isOpen) connection.read(() => this.#mailbox.run(() => this.#splitter!.resume()))
  }

  /** Posts the half ticks of a learner at fixed times, however long a turn takes. */
  #scheduleTick(at: number): void {
    const { clock } = this.#context.platform
    const next = Math.max(at + this.#context.settings.tickTimeMs / 2, clock.monotonic())
    this.#cancelTick = clock.after(next - clock.monotonic(), 'half a tick of a learner', () => {
      this.#committedATickAgo = this.#committedHalfATickAgo
      this.#committedHalfATickAgo = this.#lastCommitted
      if (this.#connection?.isPaused === true) this.#onTickDuringPause(this.#connection)
      this.#mailbox.post({ type: 'halfTick' })
      if (!this.#hasExited) this.#scheduleTick(next)
    })
  }

  /**
   * The heartbeats of the leader are not read during a pause, nor is its end. A leader disconnects a member that has not answered it for
   * `syncLimit`, whose clients would read old data for as long as its disk hangs.
   */
  #onTickDuringPause(connection: PeerConnection): void {
    const { platform, settings } = this.#context
    const limitMs = settings.syncLimit * settings.tickTimeMs
    if (this.#clients === undefined || platform.clock.monotonic() - connection.lastReceivedAt < limitMs)
      return this.#learner.heartbeat()
    if (this.#isCutOff) return
    const reason = `it has taken nothing of what its leader sent for ${limitMs} ms`
    this.#stopServing(reason)
    this.#executor.add(() => this.#leave({ reason }))
  }

  /** Disconnects the clients before the role ends, which waits for what the disk is doing. */
  #stopServing(reason: string): void {
    if (this.#isCutOff) return
    this.#isCutOff = true
    this.#clients?.disconnect(`Closed: this server does not follow any more (${reason})`)
  }

  // Work

  /** Performs work in order: at once if it is synchronous and no other work is running. */
  #performInOrder(work: LearnerWork): void {
    const { ensemble, stages } = this.#context.stats
    if (work.do === 'append') {
      ensemble.learnerProposalsReceived += work.payloads.length
      if (this.isSynced) this.#recordProposals(work.first, work.payloads)
    } else if (work.do === 'commit') {
      ensemble.learnerCommitsReceived += work.payloads.length
      this.#lastCommitted = work.first + work.payloads.length - 1
      stages.committed(this.#lastCommitted, this.#context.platform.clock.monotonic())
      if (this.isSynced) this.#recordAges(work.payloads, ensemble.propagationLatency)
    } else if (work.do === 'ack' && this.#awaitsAck !== undefined) this.#recordAck(work.last)
    // The role ends in order: a change of the members that this member has on disk has to get into its log, too.
    if (work.do === 'leave' && !this.#executor.isIdle) this.#stopServing(work.reason)
    const isSynchronous = work.do === 'ack' || (work.do === 'commit' && this.#clients !== undefined)
    if (isSynchronous && this.#executor.isIdle) void this.#perform(work)
    else this.#executor.add(() => this.#perform(work))
  }

  /**
   * Measures how old the first transaction of a batch is, and by the last one how far the clock is ahead of that of the leader: the age is
   * below 0 where it is behind.
   */
  #recordAges(payloads: readonly Uint8Array[], ages: Histogram): void {
    const now = this.#context.platform.clock.wall()
    const age = now - timeOf(payloads[0]!)
    if (age >= 0) ages.add(age)
    this.#context.stats.ensemble.clockAhead.add(now - timeOf(payloads.at(-1)!))
  }

  #recordProposals(first: Zxid, payloads: readonly Uint8Array[]): void {
    this.#recordAges(payloads, this.#context.stats.ensemble.proposalLatency)
    this.#awaitsAck ??= { zxid: first, time: timeOf(payloads[0]!) }
    this.#observers?.proposed(first)
  }

  /** Measures how old the transaction is whose acknowledgement is awaited, if it is acknowledged now. */
  #recordAck(last: Zxid): void {
    const { zxid, time } = this.#awaitsAck!
    if (zxid > last) return
    this.#awaitsAck = undefined
    const age = this.#context.platform.clock.wall() - time
    if (age >= 0) this.#context.stats.ensemble.ackCreationLatency.add(age)
  }

  #perform(work: LearnerWork): void | Promise<void> {
    if (this.#mailbox.isStopped) return undefined
    const { membership, database, platform, configurationChanged } = this.#context
    switch (work.do) {
      case 'send': {
        const { type, zxid, data, auth } = work.packet
        const isInfo = type === PacketType.followerInfo || type === PacketType.observerInfo
        const sent = isInfo && data !== null ? withExtension(data, this.#extension) : data
        return this.#connection!.send(type, zxid, sent, auth)
      }
      case 'store':
        return this.#storeEpoch(work.what, work.epoch).then(() =>
          this.#mailbox.post({ type: 'stored', what: work.what, epoch: work.epoch }),
        )
      case 'truncate':
        return this.#durability.truncate(work.to).then((input) => this.#mailbox.post(input))
      case 'installSnapshot':
        return this.#receiveSnapshot(work.zxid)
      case 'append':
        return this.#append(work.first, work.payloads)
      case 'commit':
        return this.#commit(work.first, work.payloads)
      case 'ack':
        for (let zxid = work.first; zxid <= work.last; zxid++) this.#connection!.send(PacketType.ack, zxid)
        return
      case 'flush':
        return this.#durability.flush().then((input) => this.#mailbox.post(input))
      case 'proposeConfiguration':
        configurationChanged()
        return membership.propose(work.configuration).then(configurationChanged)
      case 'activate':
        return this.#activate(work)
      case 'serve':
        return this.#serve(work.epoch)
      case 'answerPing':
        return this.#answers.add(() => this.#replyToPing(work.zxid))
      case 'deliver':
        return this.#deliver(work.packet)
      case 'requestFullSync':
        platform.logger.error(
          { reason: work.reason },
          'The data of this server is not that of its leader; it will fetch all of it anew',
        )
        return database.requestFullSync()
      case 'leave':
        return this.#leave({
          reason: work.reason,
          canReconnect: work.reconnect === true,
          ...(work.earlierEpoch === undefined ? {} : { earlierEpoch: work.earlierEpoch }),
        })
      case 'warn':
        return platform.logger.warn(work.context, work.message)
    }
  }

  /** What the info of this learner says of it. */
  get #extension(): MemberExtension {
    const { cluster, features } = this.#context
    return { ...cluster.extension(this.#sharesSecret), features: features.state }
  }

  async #storeEpoch(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): Promise<void> {
    // The id of the ensemble belongs to the history that the epoch of a leader confirms.
    if (what === 'currentEpoch' && this.#leaderSaid !== undefined)
      await this.#context.cluster.follow(this.#leaderSaid)
    if (what === 'currentEpoch') await this.#levels.follow()
    await this.#durability.storeEpoch(what, epoch)
  }

  // Snapshots

  /** Takes the bytes after a SNAP packet. Reading pauses until they are parsed. */
  #onSnapshotBytes(bytes: Uint8Array): number {
    if (this.#isSnapshotComplete) {
      this.#isSnapshotComplete = false
      return 0
    }
    this.#connection!.pause()
    this.#snapshotBytes += bytes.length
    this.#durability.snapshotBytes.push(bytes)
    return -1
  }

  /** Receives a snapshot. Each part is a heartbeat of the leader; the bytes after the snapshot are packets again. */
  async #receiveSnapshot(zxid: Zxid): Promise<void> {
    const input = await this.#durability.receiveSnapshot(zxid, (rest) => {
      this.#learner.heartbeat()
      if (rest !== undefined) {
        this.#isSnapshotComplete = true
        if (rest.length > 0) this.#connection!.receive(rest)
      }
      this.#connection!.resume()
    })
    if (input !== undefined) this.#mailbox.post(input)
  }

  // History

  /**
   * Logs transactions if all can be decoded: one that cannot would end this server, and each of its starts. Throws or rejects with a
   * `ProtocolError` otherwise.
   */
  #append(first: Zxid, payloads: readonly Uint8Array[]): void | Promise<void> {
    const { store } = this.#context.database.tree
    const steps = decodeTransactions(payloads, store, this.#reader, this.#decoded)
    const decoding = steps && this.#reads!.run(steps)
    if (decoding === undefined) return this.#durability.append(first, payloads)
    return decoding.then(() => {
      if (!this.#mailbox.isStopped) this.#durability.append(first, payloads)
    })
  }

  #commit(first: Zxid, payloads: readonly Uint8Array[]): void | Promise<void> {
    const { pipeline } = this.#clients ?? {}
    if (pipeline === undefined) return this.#commitHistory(first, payloads)
    // A transaction may end the role: it is not that of the leader.
    for (let i = 0; i < payloads.length && !this.#mailbox.isStopped; i++) {
      const [zxid, payload] = [first + i, payloads[i]!]
      this.#durability.recordCommit(zxid, payload)
      pipeline.applyCommitted(zxid, payload, this.#decoded.shift())
      this.#observers?.committed(zxid, payload)
    }
  }

  /** Applies transactions while no clients are served. Returns a promise where more than this turn is needed. */
  #commitHistory(first: Zxid, payloads: readonly Uint8Array[]): Promise<void> | undefined {
    try {
      const steps =
        payloads.length > 1 ? this.#historySteps(first, payloads) : this.#applyHistory(first, payloads[0]!)
      return steps && this.#reads!.run(steps)?.catch((error: unknown) => this.#onApplyError(error))
    } catch (error) {
      this.#onApplyError(error)
      return undefined
    }
  }

  *#historySteps(first: Zxid, payloads: readonly Uint8Array[]): Generator<void> {
    // A transaction that has begun is applied to its end, or the tree would stay inconsistent.
    for (let i = 0; i < payloads.length && !this.#mailbox.isStopped; i++) {
      const steps = this.#applyHistory(first + i, payloads[i]!)
      if (steps === undefined) yield
      else yield* steps
    }
  }

  #applyHistory(zxid: Zxid, payload: Uint8Array): Generator<void> | undefined {
    this.#durability.recordCommit(zxid, payload)
    return this.#context.database.apply(payload, this.#decoded.shift())
  }

  /** The tree may have diverged from that of the leader. Rethrows any other error. */
  #onApplyError(error: unknown): void {
    if (!(error instanceof DivergenceError)) throw error
    this.#mailbox.enqueue({ type: 'diverged', zxid: error.zxid, reason: error.message })
  }

  #activate({
    configuration,
    designated,
  }: Extract<LearnerWork, { do: 'activate' }>): Promise<void> | undefined {
    if (designated !== undefined) this.#observers?.activated(designated)
    const { exit, persisted } = activateConfiguration(this.#context, configuration, {
      leader: this.#leaderId,
      designated,
    })
    if (exit !== undefined) this.#leave(exit)
    else this.#adjustObservers()
    return persisted
  }

  // Serving

  #serve(epoch: number): void {
    const { settings, database } = this.#context
    this.#forgetLostChange(epoch)
    const sessions = new LearnerSessions(database.sessions)
    this.#sessions = sessions
    // Opens the log: the proposals that follow are appended at once.
    void this.#durability.log
    this.#clients = new RoleClients(this.#context, {
      sessions,
      role: {
        mode: this.#isObserver ? 'observer' : 'follower',
        peerState: () => `${this.#isObserver ? 'observing' : 'following'} - ${this.#learner.phase}`,
        ...(this.#isObserver ? { observerMasterId: this.#master } : {}),
        observers: () => this.#observers?.syncedObservers,
      },
      pipeline: (context) =>
        new LearnerPipeline({
          ...this.#forwardedSessions.contextOf(context),
          leader: this.#leaderChannel(),
          epochStart: makeZxid(epoch, 0),
          canUpgradeSessions: settings.localSessionsUpgradingEnabled,
          // The leader learns of touched sessions from the replies to its PINGs, two in a tick; an observer master in between adds
          // half a tick.
          touchDelayMs: settings.tickTimeMs * (this.#master === this.#leaderId ? 1 : 1.5),
          hasObservers: this.#mayServeObservers,
        }),
    })
    this.#connection!.setReadTimeout(settings.syncLimit * settings.tickTimeMs)
    this.isSynced = true
    const { followerSyncTime, observerSyncTime } = this.#context.stats.ensemble
    const syncTime = this.#isObserver ? observerSyncTime : followerSyncTime
    syncTime.add(this.#context.platform.clock.monotonic() - this.#beganAt)
    this.#events.established(epoch)
    this.#secret?.onServing()
    this.#clients.open()
    this.#epoch = epoch
    this.#adjustObservers()
    this.#levels.onServing()
    this.#connectReports()
    // What the leader committed while this server did not read its packets, such as during a slow write, is behind UPTODATE. No client has
    // session 0.
    this.#clients.pipeline.syncWithLeader(0n, () => (this.#hasCaughtUp = true))
  }

  /** Forgets a change of the members that was lost with its leader: it must not bind this server in elections, nor return when it leads. */
  #forgetLostChange(epoch: number): void {
    const { membership, database, platform, configurationChanged, failed } = this.#context
    const version = membership.proposed?.version
    const forgotten = membership.forgetLost(database.tree, epoch)
    if (forgotten === undefined) return
    forgotten.catch(failed)
    configurationChanged()
    const sentence = 'A change of the members that this server had seen was lost with its leader'
    platform.logger.info({ version: formatZxid(version!) }, sentence)
  }

  /** A leader of an earlier release closes the connection where it gets a packet that it does not know before this member is up to date. */
  #connectReports(): void {
    if (this.#leaderSaid === undefined) return
    this.#reports = { ask: (number) => this.#sendReport({ kind: 'ask', number }) }
    this.#context.reports.connect(this.#reports)
  }

  get #mayServeObservers(): boolean {
    return !this.#isObserver && this.#context.settings.observerMasterPort > 0
  }

  /**
   * Begins to serve observers, or ends it: only a server that the active configuration names does. The leader does not believe others about
   * their observers, which would block every feature level.
   */
  #adjustObservers(): void {
    const { self, active } = this.#context.membership
    const serves = this.#mayServeObservers && active.members.has(self)
    if (this.#clients === undefined || serves === (this.#observers !== undefined)) return
    if (serves) return this.#serveObservers()
    this.#observersEnded = this.#observers!.end()
    this.#observers = this.#levels.observers = undefined
    this.#levels.report()
  }

  #serveObservers(): void {
    const { service, pipeline } = this.#clients!
    const observers = new ObserverMasterRole(this.#context, {
      epoch: this.#epoch,
      pipeline,
      sessions: this.#sessions!,
      forwardedSessions: this.#forwardedSessions,
      secrets: this.#secret?.shareWithObservers(),
      levelsReported: () => this.#levels.report(),
      hasLeaderCluster: () => this.#leaderSaid !== undefined && hasClusterId(this.#leaderSaid.cluster),
      runInBatch: (action) => service.runTurn(action),
    })
    this.#observers = observers
    this.#levels.observers = observers.levels
    this.#observersEnded
      .then(() => (this.#hasExited || this.#observers !== observers ? undefined : observers.open()))
      .catch(this.#context.failed)
  }

  #leaderChannel(): LeaderChannel {
    const connection = this.#connection!
    return {
      forward: (request) => connection.forward(request),
      revalidate: (session, timeout) =>
        connection.send(PacketType.revalidate, -1, encodeRevalidation({ session, timeout })),
      lastContactAt: () => connection.lastReceivedAt,
      fail: (reason) => this.#leave({ reason }),
      reportDivergence: (zxid) =>
        this.#mailbox.enqueue({
          type: 'diverged',
          zxid,
          reason: 'the digest of the tree is not the one that the leader foresaw',
        }),
    }
  }

  #replyToPing(zxid: Zxid): Promise<void> | undefined {
    this.#clients?.service.touchThrottled()
    this.#observers?.pinged(zxid)
    const send = (data: Uint8Array): void => this.#connection!.send(PacketType.ping, zxid, data)
    const { settings, membership, platform } = this.#context
    const isMember = this.#leaderSaid !== undefined && membership.active.members.has(membership.self)
    const most = mostReported(isMember, settings.juteMaxBufferBytes)
    const report =
      this.#sessions === undefined ? new Uint8Array(0) : takeReport(this.#sessions, most, platform.clock)
    if (report instanceof Promise) return report.then(send)
    send(report)
    return undefined
  }

  #deliver({ type, data }: QuorumPacket): void {
    const pipeline = this.#clients?.pipeline
    if (pipeline === undefined) return
    if (type === PacketType.sync) return pipeline.completeSync()
    const { session, valid, isRefused } = decodeRevalidationReply(data)
    pipeline.completeRevalidation(session, valid, isRefused)
  }
}

function discard(connection: Connection): void {
  connection.setHandler({ data() {}, drain() {}, closed() {} })
  connection.destroy()
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
