import type { Cancel, Connection } from '@zabra/runtime'
import type { ClientChannel } from '../connections/client-channel.ts'
import { isFinal, NO_CLUSTER, type ServerId } from '../core/quorum/index.ts'
import type { LearnerSessions } from '../core/sessions/index.ts'
import type { SessionId, Zxid } from '../core/types.ts'
import {
  decodeLearnerInfo,
  decodeLearnerReportPacket,
  decodeMemberExtension,
  encodeInformAndActivate,
  encodeMemberExtension,
  LEARNER_INFO_BYTES,
  NO_ZXID,
  ObserverMaster,
  PacketType,
  proposedConfiguration,
  withExtension,
  type ConnectionId,
  type MemberExtension,
  type ObserverMasterInput,
  type ObserverMasterWork,
  type QuorumPacket,
  type ReportOfMember,
} from '../core/zab/index.ts'
import type { LearnerPipeline } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'
import { FeatureReports } from './feature-reports.ts'
import { ForwardedBytes, OBSERVER_LIMIT } from './forwarded-bytes.ts'
import { isBelieved, NOT_BELIEVED } from './forwarded-identities.ts'
import type { ForwardedSessions } from './forwarded-sessions.ts'
import { LearnerConnection } from './learner-connection.ts'
import { LearnerSyncs } from './learner-syncs.ts'
import { keyOfPeer, LimitedLog } from './limited-log.ts'
import { Mailbox } from './mailbox.ts'
import { takesPartInSecret, type SecretSharing } from './secret-sharing.ts'
import { createQuorumPort, type QuorumPort } from './quorum-port.ts'
import { OBSERVERS_MS, RELAY_MS, ReportRounds } from './report-rounds.ts'
import { syncSources } from './sync-sources.ts'

/** The follower that serves the observers. */
export interface FollowerContext {
  readonly epoch: number
  readonly pipeline: LearnerPipeline<ClientChannel>
  readonly sessions: LearnerSessions
  readonly forwardedSessions: ForwardedSessions
  /** Shares the secret of sessions with the observers; undefined where members share none. */
  readonly secrets: SecretSharing | undefined
  /** Called when the feature levels of observers have changed. */
  readonly levelsReported: () => void
  /** Returns whether the leader has named an id of the ensemble, which this server has stored. */
  readonly hasLeaderCluster: () => boolean
  /** Runs an action in a turn of the follower's clients. */
  readonly runInBatch: (action: () => void) => void
}

/**
 * Serves the observers of a follower with `observerMasterPort` (quorum-protocol 13): performs the work of the state machine
 * `ObserverMaster`. The follower passes on what it receives from the leader, in its own turn.
 */
export class ObserverMasterRole {
  readonly #context: MemberContext
  readonly #follower: FollowerContext
  readonly #master: ObserverMaster
  readonly #mailbox: Mailbox<ObserverMasterInput, ObserverMasterWork>
  readonly #port: QuorumPort
  readonly #observers = new Map<ConnectionId, LearnerConnection>()
  #nextId = 1
  readonly #syncs: LearnerSyncs
  /** The feature levels of the observers. */
  readonly levels: FeatureReports
  /** Collects the reports of the observers for the leader. */
  readonly #reports: ReportRounds
  /** Asks the leader for the observers. */
  readonly #relays: ReportRounds
  readonly #log: LimitedLog
  /** The requests in flight of all observers. */
  readonly #forwarded = new ForwardedBytes(OBSERVER_LIMIT)
  #cancelTick: Cancel = () => {}
  #hasEnded = false
  /** A committed change of the configuration, until `activated` passes the leader that it designates. */
  #change: { readonly zxid: Zxid; readonly payload: Uint8Array } | undefined
  /** The proposal whose time until it is sent is measured, one at a time, and when it arrived, on the monotonic clock. */
  #measured: { readonly zxid: Zxid; readonly at: number } | undefined

  constructor(context: MemberContext, follower: FollowerContext) {
    this.#context = context
    this.#follower = follower
    const { settings, membership } = context
    this.#master = new ObserverMaster({
      self: membership.self,
      epoch: follower.epoch,
      // An observer activates every configuration that it gets, so a proposed one, which may never be committed, is not sent.
      configuration: () => membership.active,
      initLimit: settings.initLimit,
      syncLimit: settings.syncLimit,
      sources: syncSources(context),
    })
    this.#mailbox = new Mailbox({
      machine: this.#master,
      perform: (work) => this.#perform(work),
      failed: context.failed,
      runInBatch: follower.runInBatch,
    })
    this.levels = new FeatureReports(context, () => this.#observers.values(), follower.levelsReported)
    const { reports, platform } = context
    const rounds = {
      clock: platform.clock,
      isMember: (id: ServerId) => membership.active.members.has(id),
      speaksFor: () => false,
    }
    this.#reports = new ReportRounds({
      ...rounds,
      collectMs: OBSERVERS_MS,
      learners: () => this.#observers.values(),
      own: () => reports.own(),
    })
    // The answer of the leader has the reports of the observers.
    this.#relays = new ReportRounds({
      ...rounds,
      collectMs: RELAY_MS,
      learners: () => [],
      own: () => reports.relay(),
    })
    this.#log = new LimitedLog(context.platform.clock, context.platform.logger)
    this.#syncs = new LearnerSyncs(context, this.#log, (to) => this.#mailbox.post({ type: 'streamed', to }))
    this.#port = createQuorumPort(
      context,
      membership
        .listenAddresses('quorumPort', settings.quorumListenOnAllIPs)
        .map((at) => ({ ...at, port: settings.observerMasterPort })),
      {
        learners: () => this.#observers.values(),
        identified: (packet, connection) => this.#mailbox.run(() => this.#onIdentified(packet, connection)),
      },
    )
  }

  /** The connections of synced observers. */
  get syncedObservers(): readonly LearnerConnection[] {
    return [...this.#observers.values()].filter(({ isSynced }) => isSynced)
  }

  /** Opens the port. The follower continues if it cannot be bound: its observers connect to another server. */
  async open(): Promise<void> {
    this.#scheduleTick()
    const { logger } = this.#context.platform
    try {
      await this.#port.open()
      const ports = this.#port.addresses.map(({ host, port }) => `${host}:${port}`)
      logger.info({ ports }, 'Observers are kept up to date here')
    } catch (error) {
      if (this.#hasEnded) return
      const reason = error instanceof Error ? error.message : String(error)
      logger.error({ reason }, 'Observers cannot be kept up to date here: the port cannot be bound')
    }
  }

  /** Closes the port and all connections. */
  async end(): Promise<void> {
    this.#hasEnded = true
    this.#reports.end()
    this.#relays.end()
    this.#mailbox.stop()
    this.#cancelTick()
    for (const observer of this.#observers.values()) observer.close()
    this.#observers.clear()
    await this.#port.close()
  }

  /** Collects the reports of the observers, with that of this server, for the leader. */
  collectReports(take: (members: readonly ReportOfMember[]) => void): void {
    this.#reports.askOwn(0, ({ members }) => take(members))
  }

  // Called in the follower's turn

  /** Begins to measure the time until a proposal is sent to observers, which get it once it is committed. */
  proposed(zxid: Zxid): void {
    this.#measured ??= { zxid, at: this.#context.platform.clock.monotonic() }
  }

  /** Sends a committed transaction, which is in the window. A change of the configuration is sent by `activated`. */
  committed(zxid: Zxid, payload: Uint8Array): void {
    if (proposedConfiguration(payload) !== undefined) this.#change = { zxid, payload }
    else this.#inform(PacketType.inform, zxid, payload)
  }

  /** Sends the configuration that was committed last, with the leader that it designates. */
  activated(designated: ServerId): void {
    const change = this.#change
    this.#change = undefined
    if (change === undefined) return
    const data = encodeInformAndActivate(designated, change.payload)
    this.#inform(PacketType.informAndActivate, change.zxid, data)
  }

  pinged(zxid: Zxid): void {
    this.#mailbox.enqueue({ type: 'pinged', zxid })
  }

  #inform(type: number, zxid: Zxid, data: Uint8Array): void {
    const { clock } = this.#context.platform
    const { relayTime, relayCommitTime } = this.#context.stats.ensemble
    const begunAt = clock.monotonic()
    for (const id of this.#master.observers) this.#observers.get(id)?.send(type, zxid, data)
    if (this.#master.hasWaitingObservers) this.#mailbox.enqueue({ type: 'committed' })
    const now = clock.monotonic()
    relayCommitTime.add(now - begunAt)
    const measured = this.#measured
    if (measured === undefined || measured.zxid > zxid) return
    this.#measured = undefined
    relayTime.add(now - measured.at)
  }

  // Observers

  #scheduleTick(): void {
    const { settings, platform } = this.#context
    this.#cancelTick = platform.clock.after(
      settings.tickTimeMs / 2,
      'half a tick of an observer master',
      () => {
        if (this.#hasEnded) return
        for (const observer of this.#observers.values()) this.#keepPaused(observer)
        this.#mailbox.post({ type: 'halfTick' })
        this.#scheduleTick()
      },
    )
  }

  /** Extends the deadlines of a paused observer, whose heartbeats are not read, and of the sessions that they would report. */
  #keepPaused(observer: LearnerConnection): void {
    if (!observer.isPaused) return
    this.#master.heartbeat(observer.id)
    if (!observer.isHeldUp) return
    const { pipeline, sessions } = this.#follower
    const steps = pipeline.visitSessionsOf(observer.id, (id) => {
      const session = sessions.get(id)
      if (session !== undefined) sessions.touchFromObserver(id, session.timeout)
    })
    if (steps !== undefined) observer.run(steps)
  }

  #onIdentified(packet: QuorumPacket, connection: Connection): void {
    const { initLimit, tickTimeMs } = this.#context.settings
    const id = this.#nextId++
    const { serverId } = decodeLearnerInfo(packet.data)
    const observer = new LearnerConnection(id, serverId, connection, this.#context, {
      received: (read) => this.#mailbox.run(read),
      packet: (type, zxid, data, auth) => {
        if (type === PacketType.sessionSecret && observer.sharesSecret)
          return this.#follower.secrets?.receive(observer, data)
        if (type === PacketType.featureLevel && observer.extension?.features !== undefined)
          return this.levels.receive(observer, data)
        if (type === PacketType.memberReport && observer.extension !== undefined)
          return this.#onMemberReport(observer, data)
        this.#mailbox.enqueue({ type: 'packet', from: id, packet: { type, zxid, data, auth } })
      },
      progress: () => this.#master.heartbeat(id),
      lost: (reason) => this.#mailbox.run(() => this.#onLost(observer, reason)),
    })
    observer.isObserver = true
    observer.extension = decodeMemberExtension(packet.data, LEARNER_INFO_BYTES)
    observer.forwarded = this.#forwarded
    observer.sharesSecret = takesPartInSecret(this.#context, observer.extension, connection)
    observer.setReadTimeout(initLimit * tickTimeMs)
    this.#observers.set(id, observer)
    const isAuthenticated = this.#context.security.isAuthenticated(connection)
    this.#mailbox.enqueue({ type: 'accepted', from: id, isAuthenticated })
    this.#mailbox.enqueue({ type: 'packet', from: id, packet })
  }

  #onMemberReport(observer: LearnerConnection, data: Uint8Array | null): void {
    const packet = decodeLearnerReportPacket(data)
    if (packet?.kind === 'ask') this.#relays.receive(observer, packet)
    else if (packet !== undefined) this.#reports.receive(observer, packet)
  }

  #onLost(observer: LearnerConnection, reason: string): void {
    if (!this.#observers.delete(observer.id)) return
    this.#removed(observer)
    const message = 'The connection of an observer is lost'
    const { serverId: peer } = observer
    this.#log.log('info', keyOfPeer(message, this.#context, observer), { peer, reason }, message)
    this.#mailbox.enqueue({ type: 'closed', from: observer.id })
  }

  #removed(observer: LearnerConnection): void {
    this.#follower.secrets?.remove(observer)
    this.#reports.remove(observer)
    this.#relays.remove(observer)
    this.#follower.levelsReported()
  }

  /** Tells the observers the id of the ensemble, which a quorum has. */
  clusterConfirmed(said: MemberExtension): void {
    for (const observer of this.#observers.values())
      if (observer.extension !== undefined)
        observer.send(PacketType.clusterId, NO_ZXID, encodeMemberExtension(said))
  }

  #perform(work: ObserverMasterWork): void {
    switch (work.do) {
      case 'send': {
        const { type, zxid, data, auth } = work.packet
        const observer = this.#observers.get(work.to)
        if (type === PacketType.upToDate && observer !== undefined) this.#follower.secrets?.add(observer)
        const isInfo = type === PacketType.leaderInfo && data !== null && observer?.extension !== undefined
        observer?.send(type, zxid, isInfo ? withExtension(data, this.#announcement) : data, auth)
        if (type === PacketType.upToDate && observer !== undefined) this.#onSynced(observer)
        return
      }
      case 'sync': {
        const observer = this.#observers.get(work.to)
        return observer === undefined ? undefined : this.#syncs.start(observer, work.plan)
      }
      case 'drop':
        return this.#drop(work.connection, work.reason)
      case 'deliver':
        return this.#deliver(work.from, work.packet)
      case 'warn':
        return this.#log.log('warn', work.message, work.context, work.message)
    }
  }

  /**
   * What this server says of itself to observers. It names a proposed id only where the leader did: another one may become that of the
   * ensemble, and an observer takes no other than it was told first.
   */
  get #announcement(): MemberExtension {
    const { cluster, features } = this.#context
    const isNamed = isFinal(cluster.current) || this.#follower.hasLeaderCluster()
    return {
      ...cluster.extension(),
      ...(isNamed ? {} : { cluster: NO_CLUSTER }),
      features: features.state,
    }
  }

  #onSynced(observer: LearnerConnection): void {
    const { syncLimit, tickTimeMs } = this.#context.settings
    observer.isSynced = true
    this.#follower.levelsReported()
    const { serverId: peer, address } = observer
    if (!isBelieved(this.#context, observer))
      this.#log.log('warn', keyOfPeer(NOT_BELIEVED, this.#context, observer), { peer, address }, NOT_BELIEVED)
    observer.setReadTimeout(syncLimit * tickTimeMs)
  }

  #drop(id: ConnectionId, reason: string): void {
    const observer = this.#observers.get(id)
    if (observer === undefined) return
    this.#observers.delete(id)
    this.#removed(observer)
    const { serverId: peer, address } = observer
    const message = 'Closed the connection of an observer'
    this.#log.log('warn', keyOfPeer(message, this.#context, observer), { peer, address, reason }, message)
    observer.close()
  }

  /** Passes a packet about sessions or a request to the pipeline. */
  #deliver(from: ConnectionId, packet: QuorumPacket): void {
    const observer = this.#observers.get(from)
    if (observer === undefined) return
    observer.handle(() => this.#handle(observer, packet))
  }

  #handle(observer: LearnerConnection, packet: QuorumPacket): void {
    const { type, data } = packet
    const { pipeline, sessions, forwardedSessions } = this.#follower
    if (type === PacketType.ping)
      return observer.run(
        forwardedSessions.pingSteps(observer, data, (id, timeout) => sessions.touchFromObserver(id, timeout)),
      )
    if (type === PacketType.revalidate)
      return forwardedSessions.revalidate(observer, data, (id, timeout, callback) => {
        this.#count(observer, id, packet)
        pipeline.revalidate(id, timeout, callback, observer.id)
      })
    const admitted = forwardedSessions.receive(observer, data, packet.auth)
    this.#count(observer, admitted.sessionId, packet)
    pipeline.forwardFromObserver(admitted, observer.id, () => observer.send(PacketType.sync, 0))
  }

  /**
   * Counts a request or a revalidation before it is forwarded. Where too many of all observers are in flight, the leader would disconnect
   * this follower: the observer is not read until they are fewer.
   */
  #count(observer: LearnerConnection, session: SessionId, { data, auth }: QuorumPacket): void {
    const forwarded = this.#forwarded
    const isWithin = forwarded.count(data, auth)
    const { pipeline } = this.#follower
    if (forwarded.isDue) forwarded.notePoint((done) => pipeline.syncWithLeader(session, done))
    if (!isWithin) observer.pauseUntilFinished()
  }
}
