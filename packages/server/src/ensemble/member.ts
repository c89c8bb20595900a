import { epochOf, formatZxid } from '@zabra/protocol'
import type { Address, Cancel, Logger, Platform } from '@zabra/runtime'
import {
  FourLetterCommands,
  type AdminServer,
  type AdminTarget,
  type DirectoryReport,
  type HealthCheck,
  type ServerBackups,
  type ServerReport,
  type TransferResult,
} from '../admin/index.ts'
import { readiness } from '../admin/http/health.ts'
import type { AuditLog } from '../audit/index.ts'
import { ClientPorts } from '../connections/client-ports.ts'
import type { ServedPort } from '../connections/listeners.ts'
import { ServerStats } from '../connections/stats.ts'
import {
  formatClusterId,
  hasClusterId,
  type ClusterId,
  type EnsembleConfiguration,
  type ServerId,
  printConfiguration,
} from '../core/quorum/index.ts'
import { SessionIdGenerator, type SessionPasswords } from '../core/sessions/index.ts'
import type { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import {
  CommittedWindow,
  MAX_STOP_PERMIT_MS,
  type ReportsResult,
  type StopPermitResult,
} from '../core/zab/index.ts'
import { SnapshotScheduler, type Database, type SharedSessionSecret } from '../database/index.ts'
import type { Server, ServerMetrics } from '../server-types.ts'
import type { ServerSettings } from '../settings/index.ts'
import { ClusterIdentity } from './cluster-identity.ts'
import type { MemberContext } from './context.ts'
import { Drain } from './drain.ts'
import { isDiskFull } from './durability.ts'
import type { FeatureLevels } from './feature-levels.ts'
import { MemberSecurity } from './member-security.ts'
import { MemberReports } from './member-reports.ts'
import type { Membership } from './membership.ts'
import { PeerAddresses } from './peer-addresses.ts'
import { RoleManager } from './role-manager.ts'
import { StopPermit } from './stop-permits.ts'

export interface MemberParts {
  readonly database: Database
  readonly membership: Membership
  /** The id of the ensemble beside the epochs. */
  readonly clusterId: ClusterId
  readonly features: FeatureLevels
  readonly passwords: SessionPasswords
  /** Undefined on a server that shares no secret of sessions with other members. */
  readonly sharedSecret: SharedSessionSecret | undefined
  /** The HTTP port, which is open already and is closed with the member. */
  readonly admin: AdminServer
  readonly audit: AuditLog | undefined
  /** Undefined where the settings name no target. */
  readonly backups: ServerBackups | undefined
  /** Stopped with the member. */
  readonly secretFiles: { stop(): void }
}

/** How long a stop may take once the leader has permitted it, beside `stop.drainMs`, in milliseconds. */
const PERMIT_MS = 120_000
/** How long a stop waits for its files at a time, in milliseconds. */
const FILES_MS = 5000

/** Runs a server: its ports, its data, and one role after the other. A standalone server has a single role. */
export class Member implements Server, AdminTarget {
  readonly #context: MemberContext
  readonly #roles: RoleManager
  readonly #admin: AdminServer
  readonly #secretFiles: MemberParts['secretFiles']
  readonly #drain: Drain
  readonly backups: ServerBackups | undefined
  readonly startedAt: number
  readonly failed: Promise<unknown>
  #resolveFailed: (reason: unknown) => void = () => {}
  #closing: Promise<void> | undefined
  #isStopped = false
  /** The members that the audit log has. */
  #recordedMembers: string
  #hasFailed = false
  /** What has failed at the end of a stop, such as the last write to the log. */
  #lateFailure: unknown
  #isListening = false

  constructor(
    settings: ServerSettings,
    platform: Platform,
    {
      database,
      membership,
      clusterId,
      features,
      passwords,
      sharedSecret,
      admin,
      audit,
      backups,
      secretFiles,
    }: MemberParts,
  ) {
    const stats = new ServerStats(platform.system)
    stats.recordStart(database.recoveryTimes)
    const { clock, logger } = platform
    const startedAt = clock.monotonic()
    this.startedAt = startedAt
    this.#admin = admin
    this.backups = backups
    this.#secretFiles = secretFiles
    this.failed = new Promise((resolve) => (this.#resolveFailed = resolve))
    this.#context = {
      settings,
      platform,
      database,
      membership,
      security: new MemberSecurity(settings, platform, membership, stats.ensemble),
      peerAddresses: new PeerAddresses({
        network: platform.network,
        clock,
        isEnabled: settings.quorumAddressCheck,
        hostsOf: (id) => membership.hostsOf(id),
        joinerHosts: () => [...membership.memberHosts, ...settings.quorumJoinerHosts],
      }),
      cluster: new ClusterIdentity(
        {
          platform,
          database,
          release: features.release,
          superseded: (error) => this.#fail(error),
        },
        clusterId,
      ),
      features,
      stopPermit: new StopPermit(clock, settings.syncLimit * settings.tickTimeMs),
      reports: new MemberReports(clock, membership.self, () => admin.report()),
      passwords,
      sharedSecret,
      stats,
      sessionIds: new SessionIdGenerator(settings.serverId, clock.wall()),
      window: new CommittedWindow(database.lastZxid, settings.commitLogCount),
      clientPorts: new ClientPorts(settings, platform, stats, membership.clientAddresses, (service) => {
        service.commands = new FourLetterCommands(service, database.folders, startedAt, admin.state)
      }),
      audit,
      snapshots: new SnapshotScheduler({
        settings,
        clock,
        logger,
        database,
        stats,
        unsavedAfter: async () => (await backups?.unsavedAfter()) ?? Infinity,
      }),
      failed: (error) => this.#fail(error),
      configurationChanged: () => this.#onConfigurationChanged(),
    }
    this.#roles = new RoleManager(this.#context)
    this.#recordedMembers = membersText(membership.active)
    this.#drain = new Drain(this.#context.clientPorts, clock)
  }

  get addresses(): { client: Address } {
    return { client: this.listeners[0]!.address }
  }

  get listeners(): readonly ServedPort[] {
    return this.#context.clientPorts.served
  }

  get settings(): ServerSettings {
    return this.#context.settings
  }

  get platform(): Platform {
    return this.#context.platform
  }

  get directories(): DirectoryReport {
    return this.#context.database.folders
  }

  get service(): ServerReport | undefined {
    return this.#context.clientPorts.service
  }

  rotateStatistics(): void {
    const { stats, database } = this.#context
    stats.rotate()
    database.tree.options.traffic?.rotate()
  }

  get configuration(): EnsembleConfiguration | undefined {
    const { membership } = this.#context
    return membership.isStandalone ? undefined : membership.active
  }

  get isListening(): boolean {
    return this.#isListening
  }

  get isStopping(): boolean {
    return this.#closing !== undefined || this.#isStopped
  }

  get hasFailed(): boolean {
    return this.#hasFailed
  }

  get isDraining(): boolean {
    return this.#drain.isActive
  }

  get certificates(): AdminTarget['certificates'] {
    const { clientPorts, security } = this.#context
    return { client: clientPorts.certificate, quorum: security.certificate }
  }

  get auditLinesLost(): number | undefined {
    return this.#context.audit?.lost
  }

  get log(): AdminTarget['log'] {
    return this.#context.database.log
  }

  get zxidLag(): number {
    return this.#roles.zxidLag
  }

  roleChecks(): readonly HealthCheck[] {
    return this.#roles.checks()
  }

  get clusterId(): string | undefined {
    const { current } = this.#context.cluster
    return hasClusterId(current) && !current.isProposed ? formatClusterId(current) : undefined
  }

  get features(): FeatureLevels {
    return this.#context.features
  }

  drain(ms: number, forMs?: number): void {
    // That of a stop goes on, and closes connections at its rate.
    if (this.isStopping && this.#drain.isActive) return
    this.#drain.start(ms)
    if (forMs !== undefined) this.#drain.endAfter(forMs, () => this.undrain())
    this.#context.platform.logger.info({ ms }, 'This server drains: it refuses new sessions')
  }

  applySettings(): void {
    const { audit, clientPorts, database, snapshots } = this.#context
    audit?.applySettings()
    database.applySettings()
    clientPorts.service?.applySettings()
    snapshots.applySettings()
  }

  undrain(): void {
    if (!this.#drain.isActive || this.isStopping) return
    this.#drain.stop()
    this.#context.platform.logger.info({}, 'This server does not drain any more: it accepts sessions')
  }

  requestStop(ms: number): Promise<StopPermitResult> {
    const { membership, stopPermit } = this.#context
    // The quorum does not need this server.
    if (membership.isStandalone || membership.role === 'observer')
      return Promise.resolve({ isGranted: true, missing: [], stopping: [] })
    return stopPermit.request(ms)
  }

  releaseStop(): void {
    this.#context.stopPermit.release()
  }

  get stopPermitMs(): number {
    return this.#context.stopPermit.remainingMs
  }

  memberReports(): Promise<ReportsResult> {
    return this.#context.reports.request()
  }

  get role(): Server['role'] {
    return this.#roles.state
  }

  get epoch(): number {
    const { database, membership } = this.#context
    return membership.isStandalone ? epochOf(database.tree.lastZxid) : database.epochs.current
  }

  get logger(): Logger {
    return this.#context.platform.logger
  }

  get leader(): ServerId | undefined {
    return this.#roles.leader
  }

  get isLeaderForeign(): boolean | undefined {
    return this.#roles.isLeaderForeign
  }

  get serving(): boolean {
    return this.#context.clientPorts.service !== undefined
  }

  get ready(): boolean {
    return readiness(this).isReady
  }

  stats(): ServerMetrics {
    const { database, clientPorts } = this.#context
    const { tree, lastZxid } = database
    const { service } = clientPorts
    return {
      lastZxid: Math.max(lastZxid, tree.lastZxid),
      nodes: tree.nodeCount,
      sessions: database.sessions.size,
      connections: service?.connections.size ?? 0,
      watches: service?.watches.size ?? 0,
      outstanding: service?.pipeline.outstanding ?? 0,
    }
  }

  async snapshot(): Promise<void> {
    await this.takeSnapshot()
  }

  takeSnapshot(): Promise<boolean> {
    return this.#context.snapshots.take()
  }

  createTree(): Tree {
    return this.#context.database.createTree()
  }

  replacementStart(lastZxid: Zxid): Zxid {
    return this.#roles.replacementStart(lastZxid)
  }

  replaceTree(tree: Tree, start: Zxid): Promise<void> {
    return this.#roles.replaceTree(tree, start)
  }

  get logRange(): AdminTarget['logRange'] {
    return this.#context.database.logRange
  }

  readHistory(after: Zxid, upTo: Zxid): ReturnType<AdminTarget['readHistory']> {
    return this.#context.database.readHistory(after, upTo)
  }

  get baseSnapshot(): AdminTarget['baseSnapshot'] {
    return this.#context.database.baseSnapshot
  }

  hasLogAfter(after: Zxid): Promise<boolean> {
    return this.#context.database.hasLogAfter(after)
  }

  async reload(): Promise<void> {
    await this.#context.clientPorts.reload()
    await this.#context.security.reload()
    await this.#admin.reload()
    this.#context.audit?.reload()
  }

  yieldLeadership(): boolean {
    return this.#roles.yieldLeadership()
  }

  transferLeadership(to?: ServerId): Promise<TransferResult> {
    return this.#roles.transferLeadership(to)
  }

  /** Opens the ports and takes part in elections. Rejects as `createServer` does; the owner closes the database then. */
  async start(signal?: AbortSignal): Promise<void> {
    const { settings, platform, database, membership, clientPorts, security, snapshots, cluster } =
      this.#context
    if (!settings.forceSync) {
      const sentence =
        'forceSync=no: acknowledged writes are lost when the machine loses power. Use it for tests only'
      platform.logger.warn({}, sentence)
    }
    // The first snapshot makes the directory complete: logs without any are refused, unless snapshot.trust.empty is set.
    if (database.lackedSnapshot && database.isEligibleToVote) await snapshots.takeFirst(signal)
    if (membership.isStandalone) await cluster.begin()
    // A standalone server enters its role before clients can connect.
    if (membership.isStandalone) this.#roles.startStandalone()
    try {
      await clientPorts.listen()
      await this.#roles.listen()
    } catch (error) {
      this.#isStopped = true
      this.#roles.stop()
      await clientPorts.close()
      await this.#roles.close()
      throw error
    }
    this.#isListening = true
    snapshots.start()
    this.backups?.start(this)
    security.start()
    if (membership.isStandalone) this.#logServing()
    else await this.#roles.start()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  #onConfigurationChanged(): void {
    const { clientPorts, membership } = this.#context
    this.#recordMembers()
    this.#roles.configurationChanged()
    clientPorts.moveTo(membership.clientAddresses.active)
  }

  #recordMembers(): void {
    const { audit, membership, platform } = this.#context
    const members = membersText(membership.active)
    if (members === this.#recordedMembers) return
    this.#recordedMembers = members
    const version = `0x${membership.active.version.toString(16)}`
    platform.logger.info({ version, members }, 'The members of the ensemble have changed')
    const detail = `version=${version} ${members}`
    audit?.record({ category: 'config', operation: 'members', result: 'success', detail })
  }

  /** Stops at once: closes everything and writes nothing more, since the state of this server can no longer be trusted. */
  #fail(error: unknown): void {
    if (this.#isStopped) {
      this.#lateFailure ??= error
      return
    }
    const { membership, platform, clientPorts, security } = this.#context
    if (!membership.isStandalone && isDiskFull(error)) return this.#roles.onDiskFull(error)
    this.#isStopped = this.#hasFailed = true
    const reason = error instanceof Error ? error.message : String(error)
    platform.logger.error({ reason }, 'The server stops: its state can no longer be trusted')
    this.#roles.stop(`The server has failed: ${reason}`)
    this.#resolveFailed(error)
    this.#roles.abort('Closed: the server has failed')
    security.stop()
    this.#secretFiles.stop()
    // The HTTP port stays open, for probes of liveness, until the owner closes the server.
    void clientPorts.close()
  }

  async #close(): Promise<void> {
    const { database, clientPorts, security, platform, audit } = this.#context
    audit?.recordServer('serverStop', 'invoked')
    if (this.#context.settings.stopPermitMs > 0) await this.#awaitPermit()
    if (this.#context.settings.stopDrainMs > 0) await this.#serveUntilDrained()
    await this.#roles.finishRequests()
    // While this server still has its role: its last transactions are in the log that ends the backups.
    await this.backups?.close()
    await this.#roles.handOver()
    await this.#admin.close()
    if (this.#isStopped) return this.#closeFailed()
    this.#isStopped = true
    this.#roles.stop()
    security.stop()
    this.#secretFiles.stop()
    const portsClosed = clientPorts.close()
    await this.#untilClosed(this.#closeFiles(this.#roles.close().then(() => portsClosed)))
    await audit?.close()
    this.#resolveFailed(this.#lateFailure)
    if (this.#lateFailure === undefined)
      platform.logger.info({ lastZxid: formatZxid(database.lastZxid) }, 'Stopped')
  }

  /** Waits for a permit to stop, for `stop.permitMs` at most. */
  async #awaitPermit(): Promise<void> {
    const { settings, platform } = this.#context
    const { clock, logger } = platform
    const { stopPermitMs, stopDrainMs, tickTimeMs } = settings
    const until = clock.monotonic() + stopPermitMs
    for (;;) {
      const result = await this.requestStop(Math.min(PERMIT_MS + stopDrainMs, MAX_STOP_PERMIT_MS))
      if (this.#isStopped || ('isGranted' in result && result.isGranted)) return
      const leftMs = until - clock.monotonic()
      if (leftMs <= 0)
        return logger.warn(
          { ...result },
          'The server stops without a permit of the leader: the time for it is over',
        )
      const later = new Promise<void>((resolve) => {
        clock.after(Math.min(tickTimeMs, leftMs), 'next request to stop', resolve)
      })
      await Promise.race([later, this.failed])
    }
  }

  /** Serves clients for `stop.drainMs`, in which load balancers learn that this server is not ready, and clients move away. */
  async #serveUntilDrained(): Promise<void> {
    const { settings, platform } = this.#context
    const { stopDrainMs } = settings
    if (this.#isStopped) return
    this.#admin.reportReadiness()
    platform.logger.info({ ms: stopDrainMs }, 'Draining before the stop: no new sessions, connections close')
    this.#drain.start(stopDrainMs)
    const drained = new Promise<void>((resolve) => {
      platform.clock.after(stopDrainMs, 'end of the drain before a stop', resolve)
    })
    await Promise.race([drained, this.failed])
  }

  /** Unlocks the data directory after a failure, which `failed` has reported. */
  async #closeFailed(): Promise<void> {
    await this.#untilClosed(this.#closeFiles(Promise.resolve())).catch(() => {})
    await this.#context.audit?.close()
  }

  /** Closes the files of the data once the role has ended. */
  async #closeFiles(roleEnded: Promise<void>): Promise<void> {
    const { database, snapshots, cluster, features } = this.#context
    // The role ends also where a snapshot in progress does not.
    await Promise.all([snapshots.stop(), roleEnded])
    await cluster.written()
    await features.written()
    await database.close()
  }

  /**
   * Waits until the files are closed, as long as the log has something to write. After that it waits some seconds more, for a data folder on
   * another disk, which may hang, or for data that are being loaded again: nothing that was acknowledged is missing, and the next start
   * takes over the lock that is left.
   */
  async #untilClosed(closed: Promise<void>): Promise<void> {
    const { database, platform } = this.#context
    const { clock, logger } = platform
    let isClosed = false
    const closing = closed.finally(() => (isClosed = true))
    for (let isLogWritten = false; ; isLogWritten = (database.log?.pendingBytes ?? 0) === 0) {
      let cancel: Cancel = () => {}
      const later = new Promise<void>(
        (resolve) => (cancel = clock.after(FILES_MS, 'files at a stop', resolve)),
      )
      await Promise.race([closing, later]).finally(cancel)
      if (isClosed) return
      if (isLogWritten) break
    }
    if (database.isLoading)
      return logger.warn(
        { folder: database.folders.snapshots },
        'The server stops while it loads its data again, and leaves its lock in the data folder',
      )
    logger.error(
      { id: 'server.files-left', folder: database.folders.snapshots },
      'The server stops without closing its files: the disk of the data does not answer',
    )
  }

  #logServing(): void {
    const { database, platform } = this.#context
    const { tree, sessions } = database
    const ports = this.listeners.map(({ key, address }) => `${key} ${address.port}`)
    platform.logger.debug(
      {
        ...this.addresses.client,
        ports,
        lastZxid: formatZxid(tree.lastZxid),
        nodes: tree.nodeCount,
        sessions: sessions.size,
      },
      'Serving clients',
    )
  }
}

/** Returns the members of a configuration on one line. The first leader gives them a version, which changes nothing. */
const membersText = (configuration: EnsembleConfiguration): string =>
  printConfiguration(configuration)
    .split('\n')
    .filter((line) => !line.startsWith('version='))
    .join(' ')
