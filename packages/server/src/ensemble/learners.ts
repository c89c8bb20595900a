import { counterOf } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import type { LeaderMetrics } from '../admin/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { Histogram } from '../core/histogram.ts'
import {
  hasClusterId,
  isSameCluster,
  verifierOf,
  type EnsembleConfiguration,
  type ServerId,
} from '../core/quorum/index.ts'
import type { Identity, Zxid } from '../core/types.ts'
import {
  decodeLearnerInfo,
  decodeLearnerReportPacket,
  decodeMemberExtension,
  decodeStopPermitRequest,
  encodeDesignatedLeader,
  encodeInformAndActivate,
  encodeMemberExtension,
  encodeStopPermitAnswer,
  LEARNER_INFO_BYTES,
  NO_ZXID,
  PacketType,
  withExtension,
  type ConnectionId,
  type Leader,
  type LeaderInput,
  type LeaderReportPacket,
  type LeaderWork,
  type QuorumOfOneWork,
  type QuorumPacket,
  type StopPermitAnswer,
} from '../core/zab/index.ts'
import type { LeaderPipeline } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'
import type { FeatureAuthority } from './feature-authority.ts'
import { ForwardedBytes, forwardLimitOf, OBSERVER_LIMIT } from './forwarded-bytes.ts'
import { isBelieved, NOT_BELIEVED } from './forwarded-identities.ts'
import type { ForwardedSessions } from './forwarded-sessions.ts'
import { LearnerConnection } from './learner-connection.ts'
import { LearnerSyncs } from './learner-syncs.ts'
import { keyOfPeer, LimitedLog } from './limited-log.ts'
import type { Mailbox } from './mailbox.ts'
import type { Refusal } from './pending-connections.ts'
import { SecretAuthority, takesPartInSecret } from './secret-sharing.ts'
import { createQuorumPort, type QuorumPort } from './quorum-port.ts'
import { COLLECT_MS, ReportRounds } from './report-rounds.ts'
import { StopPermits } from './stop-permits.ts'

/** The work of a leader that goes to all followers and observers. */
type BroadcastWork = Extract<LeaderWork, { do: 'propose' | 'commit' | 'commitReconfig' }>

/** The work of a leader that concerns its learners. */
export type LearnersWork =
  | BroadcastWork
  | Extract<LeaderWork, { do: 'send' | 'sync' | 'drop' | 'deliver' | 'learnerJoined' | 'learnerLeft' }>

export interface LearnersOptions {
  readonly leader: Leader

  readonly mailbox: Mailbox<LeaderInput, LeaderWork | QuorumOfOneWork>
  /** Undefined until the leader is established. */
  readonly pipeline: () => LeaderPipeline<ClientChannel> | undefined
  readonly levels: FeatureAuthority
  readonly forwardedSessions: ForwardedSessions
}

/**
 * Serves the learners of a leader: accepts them on the quorum port, syncs them, and passes packets between them, the leader and its
 * pipeline.
 */
export class Learners {
  readonly #context: MemberContext
  readonly #options: LearnersOptions
  readonly #port: QuorumPort
  readonly #syncs: LearnerSyncs
  readonly #log: LimitedLog
  readonly #connections = new Map<ConnectionId, LearnerConnection>()
  readonly #stopPermits: StopPermits
  readonly #reports: ReportRounds
  /** Undefined where members share no secret of sessions. */
  readonly #secrets: SecretAuthority | undefined
  /** The requests in flight of all servers that are not believed to be members: one program may claim the ids of many. */
  readonly #forwardedByUnknown = new ForwardedBytes(OBSERVER_LIMIT)
  #lastSeen: EnsembleConfiguration | undefined
  #nextId = 1

  constructor(context: MemberContext, options: LearnersOptions) {
    this.#context = context
    this.#options = options
    const { mailbox, leader } = options
    const { settings, membership } = context
    this.#stopPermits = new StopPermits({
      self: membership.self,
      leader,
      clock: context.platform.clock,
      own: context.stopPermit,
      learners: () => this.#connections.values(),
    })
    this.#reports = new ReportRounds({
      clock: context.platform.clock,
      collectMs: COLLECT_MS,
      learners: () => this.#connections.values(),
      isMember: (id) => membership.active.members.has(id),
      speaksFor: ({ serverId }, id) => this.#isObserverOf(serverId, id),
      own: () => context.reports.own(),
    })
    this.#log = new LimitedLog(context.platform.clock, context.platform.logger)
    const { sharedSecret } = context
    if (sharedSecret !== undefined) this.#secrets = new SecretAuthority({ ...context, sharedSecret })
    this.#syncs = new LearnerSyncs(context, this.#log, (to) => mailbox.enqueue({ type: 'streamed', to }))
    this.#port = createQuorumPort(
      context,
      membership.listenAddresses('quorumPort', settings.quorumListenOnAllIPs),
      {
        learners: () => this.#connections.values(),
        identified: (packet, connection) => mailbox.run(() => this.#onIdentified(packet, connection)),
      },
    )
  }

  /** Opens the quorum port. Rejects with a `NetworkError` when it cannot be bound. */
  listen(): Promise<void> {
    return this.#port.open()
  }

  /** Accepts no learner any more, and closes the connections of those that are not synced: the data are about to change. */
  keepSynced(): void {
    void this.#port.close()
    for (const learner of this.#connections.values())
      if (!learner.isSynced) learner.fail('the data of the ensemble are being replaced')
  }

  async close(): Promise<void> {
    this.#reports.end()
    for (const learner of this.#connections.values()) learner.close()
    this.#connections.clear()
    await this.#port.close()
  }

  /** Decides whether this leader itself may stop now. */
  decideOwnStop(number: number): StopPermitAnswer {
    return this.#stopPermits.decide(this.#context.membership.self, number)
  }

  /** Returns whether a server may be an observer that follows a voter. */
  #isObserverOf(voter: ServerId, id: ServerId): boolean {
    const { members } = this.#context.membership.active
    if (members.get(voter)?.role !== 'participant' || members.get(id)?.role !== 'observer') return false
    return ![...this.#connections.values()].some(({ serverId }) => serverId === id)
  }

  /** Collects the reports of all members for this leader itself. */
  collectReports(
    number: number,
    take: (answer: Extract<LeaderReportPacket, { kind: 'answer' }>) => void,
  ): void {
    this.#reports.askOwn(number, take)
  }

  /** Whether a member holds a permit to stop. */
  isStopping(server: ServerId): boolean {
    return this.#stopPermits.isHeldBy(server)
  }

  /** Expects heartbeats from now on of the learners that are sent PINGs: the leader is established. Others may still store what they got. */
  onEstablished(): void {
    for (const learner of this.#connections.values())
      if (learner.hasAckedNewLeader) learner.setReadTimeout(this.#syncLimitMs)
    this.#secrets?.decide()
    this.#confirmCluster()
  }

  /** Gives the ensemble an id if it has none, by what the connected voters say of theirs; durable when it resolves. */
  proposeCluster(): Promise<void> {
    return this.#proposeClusterBy(this.#voters())
  }

  #proposeClusterBy(voters: readonly LearnerConnection[]): Promise<void> {
    const { cluster, membership } = this.#context
    const said = new Map(voters.map(({ serverId, extension }) => [serverId, extension]))
    return cluster.propose(said, membership.self, membership.active)
  }

  /** All connections, the oldest first. */
  get all(): Iterable<LearnerConnection> {
    return this.#connections.values()
  }

  #voters(): readonly LearnerConnection[] {
    const { members } = this.#context.membership.active
    return [...this.#connections.values()].filter(
      ({ serverId, isObserver }) => !isObserver && members.get(serverId)?.role === 'participant',
    )
  }

  /** Makes the id of the ensemble final once the voters that have stored it are a quorum. */
  #confirmCluster(): void {
    const { cluster, membership, failed } = this.#context
    if (!cluster.current.isProposed || !cluster.isAnnounced) return
    const have = this.#voters().filter(
      ({ extension, hasAckedNewLeader, wasToldCluster }) =>
        extension !== undefined && hasAckedNewLeader && wasToldCluster && cluster.isTakenBy(extension),
    )
    const ids = new Set([membership.self, ...have.map(({ serverId }) => serverId)])
    if (!verifierOf(membership.active).isQuorum(ids)) return
    cluster.confirm().then(() => {
      for (const learner of this.#connections.values())
        if (learner.hasAckedNewLeader && learner.extension !== undefined) this.#sendCluster(learner)
    }, failed)
  }

  /** Sends LEADERINFO, with what this leader says of itself. */
  #introduce(learner: LearnerConnection, zxid: Zxid, data: Uint8Array): void {
    const { cluster, features } = this.#context
    const extension = { ...cluster.announcement, features: features.state }
    learner.wasToldCluster = cluster.isAnnounced
    learner.send(PacketType.leaderInfo, zxid, withExtension(data, extension))
  }

  /** Decides on an id where there was none at the start of the epoch, now that one more voter says which it has. */
  #decideCluster(): void {
    const { cluster, failed } = this.#context
    const voters = this.#voters().filter((one) => one.hasAckedNewLeader || one.extension === undefined)
    this.#proposeClusterBy(voters).then(() => {
      if (!cluster.isAnnounced) return
      for (const learner of this.#connections.values())
        if (learner.hasAckedNewLeader && learner.extension !== undefined) this.#sendCluster(learner)
    }, failed)
  }

  /** A learner that was told the id of the ensemble after its sync has stored it. */
  #onClusterStored(learner: LearnerConnection, data: Uint8Array | null): void {
    const said = decodeMemberExtension(data)
    if (said === undefined || !isSameCluster(said.cluster, this.#context.cluster.current)) return
    learner.wasToldCluster = true
    this.#confirmCluster()
  }

  #sendCluster(learner: LearnerConnection): void {
    learner.send(PacketType.clusterId, NO_ZXID, encodeMemberExtension(this.#context.cluster.extension()))
  }

  /**
   * Gives the servers that a proposed configuration names a limit of their own: a follower among them must be read, since this
   * configuration is committed with its acknowledgement where no quorum is without it.
   */
  #nameProposed(proposed: EnsembleConfiguration): void {
    this.#lastSeen = proposed
    for (const learner of this.#connections.values())
      if (learner.forwarded === this.#forwardedByUnknown && this.#isNamed(learner))
        learner.moveTo(this.#forwardedBytesOf(learner))
  }

  #isNamed(learner: LearnerConnection): boolean {
    return (
      this.#options.leader.lastSeenConfiguration.members.has(learner.serverId) ||
      isBelieved(this.#context, learner)
    )
  }

  /**
   * Closes connections that cannot be those of the servers that a new configuration names: while no configuration named a server,
   * its addresses were not known. Those of a server whose name has to be resolved stay until it is.
   */
  configurationChanged(): void {
    const { security, peerAddresses, membership } = this.#context
    this.#secrets?.decide()
    this.#options.levels.changed()
    for (const learner of this.#connections.values()) {
      const { accepted, serverId } = learner
      // A server that was removed follows on until it reconnects.
      if (security.isAuthenticated(accepted) || membership.member(serverId) === undefined) continue
      const refusal = peerAddresses.refusal(serverId, accepted)
      if (!(refusal instanceof Promise)) this.#refuse(learner, refusal)
      else void refusal.then((resolved) => this.#refuse(learner, resolved))
    }
  }

  #refuse(learner: LearnerConnection, refusal: Refusal | undefined): void {
    if (refusal !== undefined && this.#connections.get(learner.id) === learner) learner.fail(refusal.reason)
  }

  /** Sends the reply to a sync, after everything that was sent before. */
  sendSync(learner: object): void {
    ;(learner as LearnerConnection).send(PacketType.sync, 0)
  }

  counts(): Pick<
    LeaderMetrics,
    'learners' | 'peers' | 'syncedFollowers' | 'syncedNonVotingFollowers' | 'syncedObservers'
  > {
    const connections = this.#connections
    const { members } = this.#context.membership.active
    const synced = [...connections.values()].filter(({ isSynced }) => isSynced)
    const syncedObservers = synced.filter(({ isObserver }) => isObserver).length
    const syncedFollowers = synced.filter(
      ({ serverId, isObserver }) => !isObserver && members.get(serverId)?.role === 'participant',
    ).length
    return {
      learners: connections.size,
      peers: [...connections.values()],
      syncedFollowers,
      syncedNonVotingFollowers: synced.length - syncedObservers - syncedFollowers,
      syncedObservers,
    }
  }

  /**
   * The learners that run Apache ZooKeeper. One that is not synced, or that no configuration names, counts only if it has proved its id:
   * any program may claim one.
   */
  get foreign(): readonly LearnerConnection[] {
    const { membership, security } = this.#context
    return [...this.#connections.values()].filter(
      ({ extension, serverId, isSynced, accepted }) =>
        extension === undefined &&
        ((isSynced && membership.member(serverId) !== undefined) || security.isAuthenticated(accepted)),
    )
  }

  /** Extends the deadlines of paused learners: their heartbeats are not read. */
  keepPaused(): void {
    for (const learner of this.#connections.values())
      if (learner.isPaused) this.#options.leader.heartbeat(learner.id)
  }

  /** Returns the connections of synced observers. */
  observers(): readonly LearnerConnection[] {
    return [...this.#connections.values()].filter(({ isSynced, isObserver }) => isSynced && isObserver)
  }

  perform(work: LearnersWork): void {
    switch (work.do) {
      case 'propose': {
        const { lastSeenConfiguration } = this.#options.leader
        if (lastSeenConfiguration !== this.#lastSeen) this.#nameProposed(lastSeenConfiguration)
        return broadcast(this.#connections, work)
      }
      case 'commit':
      case 'commitReconfig':
        return broadcast(this.#connections, work)
      case 'send': {
        const { type, zxid, data, auth } = work.packet
        const learner = this.#connections.get(work.to)
        if (learner !== undefined && type === PacketType.upToDate) this.#secrets?.sharing.add(learner)
        if (type === PacketType.leaderInfo && data !== null && learner?.extension !== undefined)
          return this.#introduce(learner, zxid, data)
        return learner?.send(type, zxid, data, auth)
      }
      case 'sync': {
        const learner = this.#connections.get(work.to)
        return learner === undefined ? undefined : this.#syncs.start(learner, work.plan)
      }
      case 'drop':
        return this.#drop(work.connection, work.reason)
      case 'deliver':
        return this.#deliver(work.from, work.packet)
      case 'learnerJoined': {
        const learner = this.#connections.get(work.connection)
        if (learner === undefined) return
        learner.isSynced = true
        this.#options.levels.changed()
        const { serverId: peer, address } = learner
        if (!isBelieved(this.#context, learner))
          this.#log.log(
            'warn',
            keyOfPeer(NOT_BELIEVED, this.#context, learner),
            { peer, address },
            NOT_BELIEVED,
          )
        return
      }
      case 'learnerLeft':
        // Its connection is removed already.
        return
    }
  }

  get #syncLimitMs(): number {
    const { syncLimit, tickTimeMs } = this.#context.settings
    return syncLimit * tickTimeMs
  }

  #onIdentified(packet: QuorumPacket, connection: Connection): void {
    const { leader, mailbox } = this.#options
    const { initLimit, tickTimeMs } = this.#context.settings
    const id = this.#nextId++
    const { serverId } = decodeLearnerInfo(packet.data)
    const learner = new LearnerConnection(id, serverId, connection, this.#context, {
      received: (read) => mailbox.run(read),
      packet: (type, zxid, data, auth) => this.#onPacket(learner, type, zxid, data, auth),
      progress: () => leader.heartbeat(id),
      lost: (reason) => mailbox.run(() => this.#onLost(learner, reason)),
    })
    learner.isObserver = packet.type === PacketType.observerInfo
    learner.extension = decodeMemberExtension(packet.data, LEARNER_INFO_BYTES)
    learner.forwarded = this.#isNamed(learner) ? this.#forwardedBytesOf(learner) : this.#forwardedByUnknown
    learner.sharesSecret = takesPartInSecret(this.#context, learner.extension, connection)
    learner.setReadTimeout(initLimit * tickTimeMs)
    this.#connections.set(id, learner)
    const isAuthenticated = this.#context.security.isAuthenticated(connection)
    mailbox.enqueue({ type: 'accepted', from: id, isAuthenticated })
    mailbox.enqueue({ type: 'packet', from: id, packet })
  }

  #forwardedBytesOf(learner: LearnerConnection): ForwardedBytes {
    return new ForwardedBytes(forwardLimitOf(learner, this.#context.platform.system.memoryLimits?.().process))
  }

  #onPacket(
    learner: LearnerConnection,
    type: number,
    zxid: Zxid,
    data: Uint8Array | null,
    auth: readonly Identity[] | null,
  ): void {
    const { leader, mailbox } = this.#options
    if (type === PacketType.ack) return this.#onAck(learner, zxid)
    if (type === PacketType.sessionSecret && learner.sharesSecret)
      return this.#secrets?.sharing.receive(learner, data)
    if (type === PacketType.featureLevel && learner.extension?.features !== undefined)
      return this.#options.levels.reports.receive(learner, data)
    if (type === PacketType.clusterId && learner.extension !== undefined)
      return this.#onClusterStored(learner, data)
    if (type === PacketType.stopPermit && learner.extension !== undefined)
      return this.#onStopPermit(learner, data)
    // Requests bypass the mailbox: they are as frequent as writes, and `Leader` would only pass them on.
    if (type === PacketType.request && leader.heartbeat(learner.id)) return this.#submit(learner, data, auth)
    if (type === PacketType.memberReport && learner.extension !== undefined)
      return this.#onMemberReport(learner, data)

    mailbox.enqueue({ type: 'packet', from: learner.id, packet: { type, zxid, data, auth } })
  }

  #onStopPermit(learner: LearnerConnection, data: Uint8Array | null): void {
    const answer = this.#stopPermits.receive(learner, decodeStopPermitRequest(data))
    if (answer !== undefined) learner.send(PacketType.stopPermit, NO_ZXID, encodeStopPermitAnswer(answer))
  }

  #onMemberReport(learner: LearnerConnection, data: Uint8Array | null): void {
    const packet = decodeLearnerReportPacket(data)
    if (packet !== undefined) this.#reports.receive(learner, packet)
  }

  #onAck(learner: LearnerConnection, zxid: Zxid): void {
    const { leader } = this.#options
    // An established leader sends PINGs to a learner that has acknowledged NEWLEADER, which the learner answers.
    if (counterOf(zxid) === 0 && leader.phase === 'broadcast') learner.setReadTimeout(this.#syncLimitMs)
    if (counterOf(zxid) === 0 && !learner.hasAckedNewLeader) this.#onNewLeaderAck(learner)
    this.#measureAck(learner, zxid)
    leader.ack(learner.id, zxid)
  }

  /** The learner has the id of the ensemble, if it was told one. */
  #onNewLeaderAck(learner: LearnerConnection): void {
    const { cluster } = this.#context
    learner.hasAckedNewLeader = true
    if (!cluster.isAnnounced) this.#decideCluster()
    else if (!learner.wasToldCluster && learner.extension !== undefined) this.#sendCluster(learner)
    else if (cluster.current.isProposed) this.#confirmCluster()
    else if (learner.extension !== undefined && hasClusterId(cluster.current)) this.#sendCluster(learner)
  }

  #measureAck({ serverId }: LearnerConnection, zxid: Zxid): void {
    const { stats, platform, membership } = this.#context
    const { ackLatency } = stats.ensemble
    if (!stats.stages.isSampled(zxid) || !membership.active.members.has(serverId)) return
    let latency = ackLatency.get(serverId)
    if (latency === undefined) ackLatency.set(serverId, (latency = new Histogram()))
    stats.stages.addAges(zxid, 1, platform.clock.monotonic(), latency)
  }

  #onLost(learner: LearnerConnection, reason: string): void {
    if (!this.#connections.delete(learner.id)) return
    this.#removed(learner)
    const message = 'The connection of a learner is lost'
    const { serverId: peer } = learner
    this.#log.log('info', keyOfPeer(message, this.#context, learner), { peer, reason }, message)
    this.#options.mailbox.enqueue({ type: 'closed', from: learner.id })
  }

  #drop(id: ConnectionId, reason: string): void {
    const learner = this.#connections.get(id)
    if (learner === undefined) return
    this.#connections.delete(id)
    this.#removed(learner)
    const { serverId: peer, address } = learner
    const message = 'Closed the connection of a learner'
    this.#log.log('warn', keyOfPeer(message, this.#context, learner), { peer, address, reason }, message)
    learner.close()
  }

  #removed(learner: LearnerConnection): void {
    const { pipeline, forwardedSessions } = this.#options
    forwardedSessions.dropped(pipeline()?.removeLearner(learner) ?? [])
    this.#reports.remove(learner)
    this.#secrets?.sharing.remove(learner)
    this.#options.levels.changed()
  }

  /** Passes a packet about sessions or a request to the pipeline. */
  #deliver(from: ConnectionId, packet: QuorumPacket): void {
    const learner = this.#connections.get(from)
    const pipeline = this.#options.pipeline()
    if (learner === undefined || pipeline === undefined) return
    learner.handle(() => this.#handle(learner, pipeline, packet))
  }

  #handle(
    learner: LearnerConnection,
    pipeline: LeaderPipeline<ClientChannel>,
    { type, data, auth }: QuorumPacket,
  ): void {
    const { forwardedSessions } = this.#options
    if (type === PacketType.ping)
      return learner.run(
        forwardedSessions.pingSteps(learner, data, (id, timeout) => pipeline.touchSession(id, timeout)),
      )
    if (type === PacketType.revalidate) {
      if (!this.#admits(learner, pipeline, data, auth)) return
      return forwardedSessions.revalidate(learner, data, (id, timeout, callback) => {
        this.#context.stats.ensemble.revalidateCount++
        pipeline.revalidateForLearner(learner, id, timeout, (valid) => callback.onRevalidated(valid))
      })
    }
    this.#submit(learner, data, auth)
  }

  /**
   * Counts a request of a learner before it is submitted. Returns false where too many are in flight. An observer, or a server that no
   * configuration names, is not read then until they are fewer. A follower cannot be paused: requests are committed with its
   * acknowledgements, which come behind its later requests on the same connection. It is disconnected, since no member forwards so many.
   */
  #admits(
    learner: LearnerConnection,
    pipeline: LeaderPipeline<ClientChannel>,
    data: Uint8Array | null,
    auth: readonly Identity[] | null,
  ): boolean {
    const { forwarded } = learner
    const mayPause = learner.isObserver || forwarded === this.#forwardedByUnknown
    const isWithin = forwarded.count(data, auth)
    if (forwarded.isDue) {
      const sharing = [...this.#connections.values()].filter((one) => one.forwarded === forwarded)
      forwarded.notePoint((done) => pipeline.afterForwarded(sharing, done))
    }
    if (isWithin) return true
    if (mayPause) learner.pauseUntilFinished()
    else learner.fail(forwarded.reason)
    return mayPause
  }

  #submit(learner: LearnerConnection, data: Uint8Array | null, auth: readonly Identity[] | null): void {
    const pipeline = this.#options.pipeline()
    if (pipeline === undefined || !this.#admits(learner, pipeline, data, auth)) return
    pipeline.submitForwarded(learner, this.#options.forwardedSessions.receive(learner, data, auth))
  }
}

/** Sends a proposal or a commit to the learners of a leader. */
export function broadcast(
  connections: ReadonlyMap<ConnectionId, LearnerConnection>,
  work: BroadcastWork,
): void {
  const { followers } = work
  switch (work.do) {
    case 'propose':
      return send(connections, followers, PacketType.proposal, work.zxid, work.payload)
    case 'commit': {
      const { first, payloads, observers } = work
      for (let i = 0; i < payloads.length; i++) {
        send(connections, followers, PacketType.commit, first + i, null)
        send(connections, observers, PacketType.inform, first + i, payloads[i]!)
      }
      return
    }
    case 'commitReconfig': {
      const { zxid, payload, designated, observers } = work
      send(connections, followers, PacketType.commitAndActivate, zxid, encodeDesignatedLeader(designated))
      if (observers.length === 0) return
      const data = encodeInformAndActivate(designated, payload)
      return send(connections, observers, PacketType.informAndActivate, zxid, data)
    }
  }
}

function send(
  connections: ReadonlyMap<ConnectionId, LearnerConnection>,
  to: readonly ConnectionId[],
  type: number,
  zxid: Zxid,
  data: Uint8Array | null,
): void {
  for (const id of to) connections.get(id)?.send(type, zxid, data)
}
