import { BufferPool, epochOf, Writer } from '@zabra/protocol'
import type { HandshakeStats, Platform } from '@zabra/runtime'
import { AclRules, saslScheme, x509Scheme } from '../core/auth/index.ts'
import { EagerAccessCheck, Preparer, type Reconfigure } from '../core/prepare/index.ts'
import { ReadHandlers } from '../core/reads/index.ts'
import {
  SessionIdGenerator,
  SessionPasswords,
  SessionTracker,
  type Session,
  type SessionRegistry,
} from '../core/sessions/index.ts'
import type { Tree } from '../core/tree/index.ts'
import type { SessionId } from '../core/types.ts'
import { WatchManager, WatchNotifier } from '../core/watches/index.ts'
import { PartsPacker } from '../persistence/index.ts'
import type { PipelineContext, RequestPipeline } from '../pipeline/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { AuditLog } from '../audit/index.ts'
import { AuthPolicy } from './auth-policy.ts'
import type { ClientChannel } from './client-channel.ts'
import { UPGRADE_REFUSED } from './close-cause.ts'
import { CommitTurns } from './commit-turns.ts'
import { ConnectionRegistry } from './connection-registry.ts'
import { dataLimits } from './data-limits.ts'
import { DeferredReads } from './deferred-reads.ts'
import { RequestThrottler, type ThrottledChannel } from './flow-control.ts'
import { FlushQueue } from './flush-queue.ts'
import { inSlices, inTurns } from '../core/in-slices.ts'
import { LaterTurns } from '../core/later-turns.ts'
import { LineCounts } from './line-counts.ts'
import { PipelineRoom } from './pipeline-room.ts'
import type { Command } from './protocol-detector.ts'
import { MemberChanges } from './member-changes.ts'
import { MemoryBudget } from './memory-budget.ts'
import { quotaWarnings } from './quota-warnings.ts'
import { RefusalLog } from './refusal-log.ts'
import type { RoleMetrics } from './role-metrics.ts'
import { SessionExpiry } from './session-expiry.ts'
import { SlicedWork } from './sliced-work.ts'
import { SessionUsers } from './session-users.ts'
import { SlowRequests } from './slow-requests.ts'
import { TopRequests } from './top-requests.ts'
import { ServerStats } from './stats.ts'
import { TokenBucket } from './token-bucket.ts'
import { ReceiveTurns } from './receive-turns.ts'
import { TurnShares } from './turn-shares.ts'

/** Executes four-letter commands. */
export interface CommandExecutor {
  /** Returns the command with which the first bytes of a connection begin; undefined when they begin with none. */
  commandIn(bytes: Uint8Array): Command | undefined
  /**
   * Returns the answer, or yields it in chunks, as fast as they are asked for. These reject with a `DiskError` when directories cannot
   * be read.
   */
  execute(name: string, argument: Uint8Array, channel: ClientChannel): string | AsyncIterable<string>
}

/** Reports the client ports to commands. */
export interface PortStatus {
  /** Returns the port of a key; -1 when it is not served. */
  portOf(key: 'clientPort' | 'secureClientPort' | 'webSocketPort'): number
  readonly handshakes: HandshakeStats
}

export interface ClientServiceOptions {
  readonly settings: ServerSettings
  readonly platform: Platform
  readonly tree: Tree
  /** The global sessions. */
  readonly sessions: SessionRegistry
  /** Makes the request pipeline of the role. */
  readonly createPipeline: (context: PipelineContext<ClientChannel>) => RequestPipeline
  /** Whether new sessions are local (`localSessionsEnabled`). On a read-only server they always are. */
  readonly hasLocalSessions?: boolean
  /** Whether the server is read-only: it serves only clients that accept that. */
  readonly isReadOnly?: boolean
  /** Whether reconfig is allowed (`reconfigEnabled`). This and `reconfigure` are set only on a server that prepares writes. */
  readonly isReconfigEnabled?: boolean
  readonly reconfigure?: Reconfigure
  /** Metrics of the role for commands. By default those of a standalone server. */
  readonly role?: RoleMetrics
  /** Statistics that continue over several roles; new ones by default. */
  readonly stats?: ServerStats
  readonly sessionIds?: SessionIdGenerator
  /** Records logins, sessions, and writes that are refused before the pipeline gets them. */
  readonly audit?: AuditLog | undefined
  /** By default those of Apache ZooKeeper. */
  readonly passwords?: SessionPasswords
  /** Returns how many writes may be in flight now; `globalOutstandingLimit` by default. */
  readonly outstandingLimit?: () => number
  /** Returns how many servers the ensemble has, this one included; 1 by default. */
  readonly servers?: () => number
  /** Called once, when an invariant does not hold. The server must stop. */
  readonly onFailure: (error: unknown) => void
}

const NO_COMMANDS: CommandExecutor = { commandIn: () => undefined, execute: () => '' }
const NO_PORTS: PortStatus = { portOf: () => -1, handshakes: { active: 0, rejected: 0, failed: 0 } }

/** Watches of a closed connection that are removed in one step. */
const WATCHES_REMOVED_AT_ONCE = 200
/** So many are removed at once when the connection closes. */
const FEW_WATCHES = 20
/** Sessions that are extended in one turn, in a millisecond: all of 50,000 in a quarter of a second, while turns take 10 ms. */
const TOUCHED_PER_TURN = 2000
/** Milliseconds that a stopping server waits for clients to read their last bytes. */
const LAST_BYTES_MS = 1000

/** Serves clients during one role. Holds the state that all client connections share, and runs their events. */
export class ClientService {
  readonly settings: ServerSettings
  readonly platform: Platform
  readonly tree: Tree
  /** Sessions that the whole ensemble knows. */
  readonly sessions: SessionRegistry
  /** Sessions that only this server knows; undefined when the settings have none. */
  readonly localSessions: SessionTracker | undefined
  readonly isReadOnly: boolean
  readonly role: RoleMetrics
  readonly watches: WatchManager<ClientChannel>
  readonly watchNotifier: WatchNotifier<ClientChannel>
  readonly reads: ReadHandlers<ClientChannel>
  readonly pipeline: RequestPipeline
  readonly auth: AuthPolicy
  readonly passwords: SessionPasswords
  /** Refuses writes before they are forwarded or prepared; undefined unless `enableEagerACLCheck` is on in an ensemble. */
  readonly eagerAccess: EagerAccessCheck | undefined
  readonly stats: ServerStats
  readonly audit: AuditLog | undefined
  readonly connections: ConnectionRegistry
  readonly throttler: RequestThrottler
  readonly deferredReads: DeferredReads
  readonly pipelineRoom: PipelineRoom
  /** The requests without a reply, of all connections. */
  readonly lines = new LineCounts()
  /** Connections that are not read because too many bytes of their requests wait. */
  readonly backlogged = new Set<ClientChannel>()
  readonly turnShares: TurnShares
  readonly receiveTurns: ReceiveTurns
  /** Replies that are written, or handed to their sockets, over several turns. */
  readonly slicedWork: SlicedWork
  /** The watches of closed connections, which are removed over several turns, also after the end of the role. */
  readonly #staleWatches: SlicedWork
  readonly memory: MemoryBudget
  readonly refusals: RefusalLog
  readonly slowRequests: SlowRequests
  readonly topRequests: TopRequests
  readonly expiry: SessionExpiry
  readonly sessionUsers: SessionUsers
  readonly memberChanges: MemberChanges
  readonly flushQueue: FlushQueue
  /** Limits new sessions (`connection_throttle_tokens`); undefined without a limit. */
  sessionTokens: TokenBucket | undefined
  /** Holds the buffers of replies and of queued requests. */
  readonly bufferPool = new BufferPool()
  /** Takes bytes that are never sent, such as the empty body of a reply. Emptied at the end of each turn. */
  readonly scratch = new Writer(64)
  commands: CommandExecutor = NO_COMMANDS
  portStatus: PortStatus = NO_PORTS
  isAccepting = true
  /** Whether the server drains: it refuses new and resumed sessions, and answers four-letter commands. */
  isDraining = false
  /** When the current turn began, on the monotonic clock. */
  turnTime = 0
  readonly #commitTurns: CommitTurns
  readonly #laterTurns: LaterTurns
  readonly #sessionIds: SessionIdGenerator
  readonly #onFailure: (error: unknown) => void
  /** Whether the sessions of clients that are not read are being extended. */
  #isTouching = false
  #depth = 0
  /** Whether events are ignored: the role has ended, or the server has failed. */
  #isStopped = false
  /** Resolves when all connections are closed; undefined before the end of the role. */
  #ended: Promise<void> | undefined

  constructor({
    settings,
    platform,
    tree,
    sessions,
    createPipeline,
    hasLocalSessions = false,
    isReadOnly = false,
    isReconfigEnabled = false,
    reconfigure,
    role = { mode: 'standalone' },
    stats = new ServerStats(),
    sessionIds = new SessionIdGenerator(settings.serverId, platform.clock.wall()),
    passwords = new SessionPasswords(undefined),
    outstandingLimit = () => settings.globalOutstandingLimit,
    servers = () => 1,
    audit,
    onFailure,
  }: ClientServiceOptions) {
    this.settings = settings
    this.platform = platform
    this.tree = tree
    this.sessions = sessions
    this.isReadOnly = isReadOnly
    this.role = role
    this.stats = stats
    this.audit = audit
    this.#sessionIds = sessionIds
    this.#onFailure = onFailure
    const { clock, logger, system } = platform
    this.#commitTurns = new CommitTurns({
      tree,
      clock,
      stats,
      lines: this.lines,
      pipeline: () => this.pipeline,
    })
    this.#laterTurns = new LaterTurns({ clock, runTurn: (action) => this.runTurn(action) })
    const runLater = (action: () => void): void => this.runLater(action)
    if (hasLocalSessions || isReadOnly)
      this.localSessions = new SessionTracker(settings.tickTimeMs, clock.monotonic(), { isLocal: true })
    system.resetPauses?.()
    this.auth = new AuthPolicy(settings)
    this.passwords = passwords
    this.connections = new ConnectionRegistry(settings, system.fileDescriptors().max)
    this.refusals = new RefusalLog(platform)
    this.topRequests = new TopRequests(clock)
    this.slowRequests = new SlowRequests({
      clock,
      logger,
      epoch: () => epochOf(this.pipeline.lastVisibleZxid),
      stages: stats.stages,
    })
    this.memory = new MemoryBudget({
      bytes: settings.clientMemoryBytes,
      system,
      logger,
      clock,
      runLater,
      sessions: () => sessions.size + (this.localSessions?.size ?? 0),
    })
    this.throttler = new RequestThrottler({
      outstanding: () => this.pipeline.outstanding,
      limit: outstandingLimit,
      stats,
      now: () => this.turnTime,
      runLater,
    })
    this.flushQueue = new FlushQueue(runLater, () => clock.monotonic(), stats.watches.latency)
    this.deferredReads = new DeferredReads({ tree, clock, runLater })
    this.pipelineRoom = new PipelineRoom({ clock, runLater, servers })
    this.receiveTurns = new ReceiveTurns({
      runLater: (action) => clock.immediate(() => this.runTurn(action)),
    })
    this.turnShares = new TurnShares({ clock, runLater, turnTime: () => this.turnTime })
    this.slicedWork = new SlicedWork(clock, runLater)
    this.#staleWatches = new SlicedWork(clock, (action) => clock.immediate(action))
    const acls = aclRulesOf(settings, () => this.turnShares.checkNext())
    if (settings.eagerAclCheck && settings.ensemble !== undefined)
      this.eagerAccess = new EagerAccessCheck(tree, acls)
    this.watches = new WatchManager(tree.options.hashKey)
    this.watchNotifier = new WatchNotifier(this.watches, acls, stats.watches)
    this.reads = new ReadHandlers({ tree, acls, watches: this.watches, watchNotifier: this.watchNotifier })
    const limits = dataLimits({
      logger: platform.logger,
      system: platform.system,
      turnTime: () => this.turnTime,
      dataMemory: settings.dataMemoryBytes,
      freeBytes: () => tree.store.freeBytes,
    })
    const onQuotaExceeded = quotaWarnings(platform, tree.options.hashKey)
    this.pipeline = createPipeline({
      tree,
      watchNotifier: this.watchNotifier,
      clock,
      stages: stats.stages,
      turnTime: () => this.turnTime,
      sessions,
      localSessions: this.localSessions,
      createPreparer: (view) =>
        new Preparer({
          tree,
          acls,
          sessions: view,
          enforceQuota: settings.enforceQuota,
          quotaRequiresAdmin: settings.quotaRequiresAdmin,
          reconfigEnabled: isReconfigEnabled,
          createParts: (bytes) => new PartsPacker(bytes, tree.store),
          ...(reconfigure === undefined ? {} : { reconfigure }),
          onQuotaExceeded,
          changes: stats.changes,
          ...limits,
        }),
      defer: runLater,
      hasDeferredReads: () => this.deferredReads.size > 0,
      onSessionCreated: ({ id, timeout }) => {
        const channel = this.connections.ofSession(id)
        if (channel === undefined) return
        const userProof = channel.session?.userProof
        const session = sessions.resume(id, timeout, this.turnTime)
        channel.session = session
        if (userProof === undefined) return
        // It was a local session until now. A leader that is Apache ZooKeeper has not stored its user.
        session.userProof = userProof
        runLater(() => this.sessionUsers.store(session))
      },
      onSessionUserStored: (id) => this.sessionUsers.stored(id),
      onUpgradeRefused: (id) => {
        const channel = this.connections.ofSession(id)
        if (channel === undefined) return
        stats.refusals.sessions++
        channel.destroy('session_expired', UPGRADE_REFUSED)
      },
      onSessionClosed: (id, callback) => {
        const channel = this.connections.ofSession(id)
        if (channel?.requests !== callback) channel?.destroy('session_expired', 'Closed: its session is over')
      },
    })
    this.sessionUsers = new SessionUsers({
      tree,
      passwords,
      localSessions: this.localSessions,
      connections: this.connections,
      pipeline: this.pipeline,
      logger,
    })
    this.memberChanges = new MemberChanges(this, settings.syncLimit * settings.tickTimeMs)
    this.expiry = new SessionExpiry({
      clock,
      refusals: this.refusals,
      sessions,
      localSessions: this.localSessions,
      pipeline: this.pipeline,
      connections: this.connections,
      stats,
      audit,
      runLater,
    })
  }

  /**
   * Handles one event (bytes, a timer, a completed operation), then flushes the connections for which it has produced bytes. An
   * error is a defect of the server, which stops because its state can no longer be trusted.
   */
  runTurn(action: () => void): void {
    if (this.#isStopped) return
    if (this.#depth++ === 0) this.turnTime = this.platform.clock.monotonic()
    try {
      action()
      if (this.#depth === 1 && !this.#isStopped) {
        this.#commitTurns.ended(this.turnTime)
        // A write of any connection may have completed, which frees room for the writes of throttled ones.
        this.throttler.release()
        this.flushQueue.flush()
        this.#measureReplies()
        this.scratch.reset()
      }
    } catch (error) {
      this.#isStopped = true
      this.#onFailure(error)
    } finally {
      this.#depth--
    }
  }

  #measureReplies(): void {
    const { stages } = this.stats
    if (!stages.hasUnsent && !this.slowRequests.hasUnsent) return
    const now = this.platform.clock.monotonic()
    stages.sent(now)
    this.slowRequests.sent(now)
  }

  /** Handles an event in a later turn, after the I/O that is ready now. */
  runLater(action: () => void): void {
    this.#laterTurns.add(action)
  }

  /**
   * Ends the role: from this call on nothing is read or answered. In-flight requests get no reply; connections close because their
   * outcome is unknown. Global sessions continue on other servers, local ones end. Resolves when all connections are closed and the
   * transaction that is being applied is done, over turns of the event loop.
   */
  endRole(reason: string): Promise<void> {
    this.isAccepting = false
    this.#isStopped = true
    this.memberChanges.end(`the role of the server has ended (${reason})`)
    this.#ended ??= this.#end(this.pipeline.end(), reason)
    return this.#ended
  }

  async #end(applying: Iterable<void> | undefined, reason: string): Promise<void> {
    const { clock } = this.platform
    const closed = inTurns(this.connections, (channel) => channel.destroy('role_ended', reason), clock)
    try {
      await Promise.all([closed, inTurns(applying ?? [], () => {}, clock)])
    } catch (error) {
      this.#onFailure(error)
    }
  }

  /**
   * Closes all connections of a server that stops, once every request that has arrived has its reply, or after `timeoutMs`: a client
   * must not be left without the outcome of a write, nor without the event of one. Connections that do not read their last bytes
   * within a second are destroyed.
   */
  async closeConnections(timeoutMs: number): Promise<void> {
    const reason = 'Closed: the server is stopping'
    await new Promise<void>((resolve) => {
      const cancel = this.platform.clock.after(timeoutMs, 'last replies of a server that stops', resolve)
      let left = 1
      const onAnswered = (): void => {
        if (--left > 0) return
        cancel()
        resolve()
      }
      left++
      this.memberChanges.whenDone(onAnswered)
      void this.forEachConnection((channel) => {
        left++
        channel.finishRequests(onAnswered)
      }).then(onAnswered)
    })
    this.memberChanges.end('the server is stopping')
    await this.forEachConnection((channel) => channel.closeAfterFlush('stopping', reason))
    if (this.connections.size > 0) {
      await new Promise<void>((resolve) => {
        this.connections.whenEmpty(resolve)
        this.platform.clock.after(LAST_BYTES_MS, 'clients that do not read their last bytes', resolve)
      })
    }
    await this.forEachConnection((channel) => channel.destroy('stopping', reason))
  }

  /**
   * Calls `action` for each connection, over several turns, until it returns false. Resolves after the last one, or when the role has
   * ended.
   */
  forEachConnection(action: (channel: ClientChannel) => boolean | void): Promise<void> {
    const { clock } = this.platform
    return new Promise((resolve) => {
      const run = (slice: () => void): void => {
        this.runTurn(slice)
        if (this.#isStopped) resolve()
      }
      run(() =>
        inSlices(this.connections, action, {
          now: () => clock.monotonic(),
          runLater: (slice) => clock.immediate(() => run(slice)),
          done: resolve,
        }),
      )
    })
  }

  /**
   * Extends the sessions of clients whose pings this server does not read, for a leader that would expire them: some in each turn. Does
   * nothing while an earlier call is under way.
   */
  touchThrottled(): void {
    if (this.#isTouching) return
    this.#isTouching = true
    inSlices(
      this.#unread(),
      ({ session, flow }) => {
        if (session !== undefined && !session.isClosing && flow.isThrottled) this.touchSession(session)
      },
      {
        most: TOUCHED_PER_TURN,
        now: () => this.platform.clock.monotonic(),
        runLater: (slice) => this.runLater(slice),
        done: () => (this.#isTouching = false),
      },
    )
  }

  /** Yields the connections that may not be read now. */
  *#unread(): Generator<ThrottledChannel> {
    yield* this.throttler.channels
    yield* this.backlogged
    yield* this.receiveTurns.waiting
  }

  /** Forgets a closed connection with its watches. */
  removeConnection(channel: ClientChannel): void {
    this.throttler.remove(channel)
    this.deferredReads.remove(channel)
    this.pipelineRoom.remove(channel)
    this.backlogged.delete(channel)
    this.turnShares.remove(channel)
    this.receiveTurns.remove(channel)
    this.#removeWatches(channel)
    if (this.connections.remove(channel)) this.sessions.detach(channel.sessionId)
  }

  /** Removes the watches of a closed connection in slices: it gets no events any more, so they may stay for a while. */
  #removeWatches(channel: ClientChannel): void {
    const removeMore = (): boolean => !this.watches.removeSome(channel, WATCHES_REMOVED_AT_ONCE)
    if (channel.watchedPaths.size > FEW_WATCHES) this.#staleWatches.add(removeMore)
    else removeMore()
  }

  /** Returns an id for a new session. Skips ids of existing sessions, which occur after the wall clock was set back. */
  newSessionId(): SessionId {
    let id = this.#sessionIds.next()
    while (this.sessionOf(id) !== undefined || this.tree.owners.ofSession(id).size > 0)
      id = this.#sessionIds.next()
    return id
  }

  /** Takes the settings that are not read each time when they are needed: before the first connection, and when they have changed. */
  applySettings(): void {
    const { slowRequestMs, slowRequestReadMs } = this.settings
    this.slowRequests.setLimits(slowRequestMs, slowRequestReadMs)
    this.sessionTokens = sessionTokensOf(this.settings)
  }

  /** Returns a local or a global session. */
  sessionOf(id: SessionId): Session | undefined {
    return this.localSessions?.get(id) ?? this.sessions.get(id)
  }

  /** Extends the deadline of a session whose client has sent a request. */
  touchSession(session: Session): void {
    if (session.isLocal) this.localSessions!.touch(session, this.turnTime)
    else this.sessions.touch(session, this.turnTime)
  }
}

function sessionTokensOf(settings: ServerSettings): TokenBucket | undefined {
  const { connectionThrottleTokens: size } = settings
  if (size <= 0) return undefined
  return new TokenBucket(size, settings.connectionThrottleFillTimeMs, settings.connectionThrottleFillCount)
}

function aclRulesOf(settings: ServerSettings, onLongList: () => void): AclRules {
  const servesTls = settings.secureClientPort !== undefined || settings.webSocketSecure
  const schemes = new Map([
    ...(servesTls ? [['x509', x509Scheme] as const] : []),
    ...(settings.saslAclScheme ? [['sasl', saslScheme] as const] : []),
  ])
  return new AclRules({ skipACL: settings.skipAcl, schemes, onLongList })
}
