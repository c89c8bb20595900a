import { BufferPool, Writer, type ProtocolError } from '@zabra/protocol'
import type { Connection, HandshakeStats, Platform } from '@zabra/runtime'
import {
  AclRules,
  authenticate,
  canonicalIp,
  identitiesOfCertificate,
  saslScheme,
  x509Scheme,
} from '../core/auth/index.ts'
import { Preparer, type Reconfigure } from '../core/prepare/index.ts'
import { ReadHandlers } from '../core/reads/index.ts'
import {
  SessionIdGenerator,
  SessionTracker,
  type Session,
  type SessionRegistry,
} from '../core/sessions/index.ts'
import type { QuotaBreach, Tree } from '../core/tree/index.ts'
import type { Identity, SessionId } from '../core/types.ts'
import { WatchNotifier, WatchManager } from '../core/watches/index.ts'
import { PartsPacker } from '../persistence/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { FourLetterCommands, RoleMetrics } from '../admin/index.ts'
import { ClientConnection } from './client-connection.ts'
import { FlushQueue } from './flush-queue.ts'
import { endSessionsInSlices } from './session-expiry.ts'
import { formatSessionId } from './format-session-id.ts'
import type { ServedPort } from './listeners.ts'
import { ServerStats } from './stats.ts'
import { TokenBucket } from './token-bucket.ts'
import type { WriteCallback, RequestPipeline, PipelineContext } from '../pipeline/index.ts'

export interface ClientServiceOptions {
  readonly settings: ServerSettings
  readonly ports: Platform
  readonly tree: Tree
  readonly sessions: SessionRegistry
  /** Makes what the role does with everything that is not a read. */
  readonly createPipeline: (kit: PipelineContext<ClientConnection>) => RequestPipeline
  /** Whether new sessions are known to this server alone (`localSessionsEnabled`); always so where it is read-only. */
  readonly hasLocalSessions?: boolean
  /** Whether only clients are served that want no more than to look. */
  readonly isReadOnly?: boolean
  /** Whether changes of the ensemble are taken (`reconfigEnabled`), and who judges them; only where this server decides. */
  readonly isReconfigEnabled?: boolean
  readonly reconfigure?: Reconfigure
  /** What words say of the role; that of a server that stands alone otherwise. */
  readonly role?: RoleMetrics
  /** Go on over several terms; new ones otherwise. */
  readonly stats?: ServerStats
  readonly sessionIds?: SessionIdGenerator
  /** How many writes on their way are too many, at this moment; `globalOutstandingLimit` by default. */
  readonly outstandingLimit?: () => number
  /** Called once when something that must hold does not. The server is over then. */
  readonly onFailure: (error: unknown) => void
}

/** Milliseconds between two warnings of one quota. */
const QUOTA_WARNING_MS = 60_000
/** File descriptors for logs, snapshots and the runtime. */
const RESERVED_DESCRIPTORS = 64
/** Identities of one connection: every access check looks at all of them. */
const MAX_IDENTITIES = 100
/** Watches of a connection that is gone that are dealt with in one turn. */
const FORGOTTEN_IN_A_TURN = 2000
/** How long a stopping server waits for clients to read, in milliseconds. */
const LAST_BYTES_MS = 1000

/** Everything that the connections of one server share in one term of its role, and who they are. */
export class ClientService {
  readonly settings: ServerSettings
  readonly ports: Platform
  readonly tree: Tree
  readonly sessions: SessionRegistry
  /** Sessions that only this server knows; undefined when there are none by the settings. */
  readonly localSessions: SessionTracker | undefined
  readonly isReadOnly: boolean
  readonly role: RoleMetrics
  readonly sessionIds: SessionIdGenerator
  readonly watches = new WatchManager<ClientConnection>()
  readonly watchNotifier: WatchNotifier<ClientConnection>
  readonly reads: ReadHandlers<ClientConnection>
  readonly pipeline: RequestPipeline
  readonly stats: ServerStats
  /** Takes what nobody reads, such as the empty body of a reply. */
  readonly scratch = new Writer(64)
  /** Where replies and requests that wait are written. */
  readonly bufferPool = new BufferPool()
  readonly connections = new Set<ClientConnection>()
  commands!: FourLetterCommands
  isAccepting = true
  /** The port of a key, -1 when it is not served. */
  portOf: (key: ServedPort['key']) => number = () => -1
  /** What became of handshakes of TLS. */
  tlsHandshakes: () => HandshakeStats = () => ({ active: 0, rejected: 0, failed: 0 })
  /** When this turn began, on the monotonic clock. */
  turnTime = 0
  readonly #bySession = new Map<SessionId, ClientConnection>()
  readonly #quotaWarnings = new Map<string, number>()
  /** Passwords of who may log in by SASL. */
  readonly saslUsers: ReadonlyMap<string, string>
  readonly #perHost = new Map<string, number>()
  readonly #enforcedSchemes: readonly string[]
  readonly #held = new Set<ClientConnection>()
  /** Those that wait for the tree to be whole. */
  readonly #reading = new Set<ClientConnection>()
  readonly #tokens: TokenBucket | undefined
  /** 0 is no limit. */
  readonly #mostConnections: number
  readonly #outstandingLimit: () => number
  readonly #failed: (error: unknown) => void
  readonly #dirty: FlushQueue
  /** Called when the last connection is gone. */
  #emptied: () => void = () => {}
  #depth = 0
  #stopped = false

  constructor({
    settings,
    ports,
    tree,
    sessions,
    createPipeline: writes,
    hasLocalSessions: localSessions = false,
    isReadOnly: readOnly = false,
    isReconfigEnabled: reconfigEnabled = false,
    reconfigure,
    role = { mode: 'standalone' },
    stats = new ServerStats(),
    sessionIds = new SessionIdGenerator(settings.serverId, ports.clock.wall()),
    outstandingLimit = () => settings.globalOutstandingLimit,
    onFailure: failed,
  }: ClientServiceOptions) {
    this.settings = settings
    this.ports = ports
    this.#dirty = new FlushQueue({
      runLater: (action) => this.runLater(action),
      together: (action) =>
        ports.network.together === undefined ? action() : ports.network.together(action),
    })
    this.tree = tree
    this.sessions = sessions
    this.stats = stats
    this.role = role
    this.isReadOnly = readOnly
    const now = ports.clock.monotonic()
    if (localSessions || readOnly)
      this.localSessions = new SessionTracker(settings.tickTimeMs, now, { isLocal: true })
    this.#failed = failed
    this.#mostConnections = mostConnections(settings.maxCnxns, ports.system.fileDescriptors().max)
    this.sessionIds = sessionIds
    this.#outstandingLimit = outstandingLimit
    ports.system.resetPauses?.()
    const servesTls = settings.secureClientPort !== undefined || settings.webSocketSecure
    const schemes = new Map([
      ...(servesTls ? [['x509', x509Scheme] as const] : []),
      ...(settings.saslAclScheme ? [['sasl', saslScheme] as const] : []),
    ])
    const acls = new AclRules({ skipACL: settings.skipAcl, schemes })
    this.watchNotifier = new WatchNotifier(this.watches, acls)
    this.reads = new ReadHandlers({ tree, acls, watches: this.watches, watchNotifier: this.watchNotifier })
    this.pipeline = writes({
      tree,
      watchNotifier: this.watchNotifier,
      clock: ports.clock,
      sessions,
      localSessions: this.localSessions,
      createPreparer: (view) =>
        new Preparer({
          tree,
          acls,
          sessions: view,
          enforceQuota: settings.enforceQuota,
          reconfigEnabled,
          createParts: (bytes) => new PartsPacker(bytes, tree.store),
          ...(reconfigure === undefined ? {} : { reconfigure }),
          onQuotaExceeded: (subject, breach) => this.#warnOfQuota(subject, breach),
        }),
      defer: (action) => this.runLater(action),
      onSessionCreated: (session) => this.#sessionBegun(session),
      onSessionClosed: (id, told) => this.#sessionEnded(id, told),
    })
    this.#enforcedSchemes = enforcedSchemes(settings)
    this.saslUsers = saslUsers(settings)
    if (settings.connectionThrottleTokens > 0) {
      this.#tokens = new TokenBucket(
        settings.connectionThrottleTokens,
        settings.connectionThrottleFillTimeMs,
        settings.connectionThrottleFillCount,
      )
    }
  }

  /**
   * Runs one entry from outside (bytes, a timer, a completion) and sends at its end what it has produced. An error that
   * comes out of it is ours: the server stops rather than goes on in a state that nobody understands.
   */
  runTurn(action: () => void): void {
    if (this.#stopped) return
    if (this.#depth++ === 0) this.turnTime = this.ports.clock.monotonic()
    try {
      action()
      if (this.#depth === 1) {
        // Wherever a write has come to its end, here or at the leader, those that were held back may go on.
        this.releaseThrottled()
        this.#dirty.flush()
        this.scratch.reset()
      }
    } catch (error) {
      this.#stopped = true
      this.#failed(error)
    } finally {
      this.#depth--
    }
  }

  /**
   * The role is over. Nothing that is on its way is answered; connections are cut, which says that its fate is open. Sessions
   * go on elsewhere, but for those that only this server knows.
   */
  endRole(reason: string): void {
    this.isAccepting = false
    this.pipeline.end()
    for (const connection of this.connections) connection.destroy(reason)
    this.#stopped = true
  }

  /** Takes no further entries. */
  stop(): void {
    this.#stopped = true
  }

  /** Runs something in a turn of its own, after the I/O that is ready now. */
  runLater(action: () => void): void {
    this.ports.clock.immediate(() => this.runTurn(action))
  }

  scheduleFlush(connection: ClientConnection): void {
    this.#dirty.add(connection)
  }

  /** The same for one that is told of a change. */
  scheduleNotification(connection: ClientConnection): void {
    this.#dirty.notify(connection)
  }

  /** Says that a quota is exceeded, at most once a minute for each. */
  #warnOfQuota(subject: string, { what, isHard, limit, use }: QuotaBreach): void {
    const key = `${subject} ${what}`
    const now = this.ports.clock.monotonic()
    if (now - (this.#quotaWarnings.get(key) ?? -Infinity) < QUOTA_WARNING_MS) return
    this.#quotaWarnings.set(key, now)
    const kind = isHard ? 'hard limit, which is not enforced,' : 'limit'
    this.ports.logger.warn(
      { path: subject, limit, use },
      `${subject} goes beyond its ${kind} of ${limit} ${what}`,
    )
  }

  // Connections

  /** Takes a connection in, or refuses it with a reason in the log. */
  accept(wire: Connection): void {
    const host = canonicalIp(wire.remote.host)
    const count = this.#perHost.get(host) ?? 0
    const { maxClientCnxns } = this.settings
    const maxCnxns = this.#mostConnections
    const reason = !this.isAccepting
      ? 'the server is stopping'
      : maxClientCnxns > 0 && count >= maxClientCnxns
        ? `its address has ${count} connections already and maxClientCnxns is ${maxClientCnxns}`
        : maxCnxns > 0 && this.connections.size >= maxCnxns
          ? `there are ${this.connections.size} connections, and maxCnxns and the file descriptors of the process allow ${maxCnxns}`
          : undefined
    if (reason !== undefined) {
      this.stats.connectionsRejected++
      this.ports.logger.warn({ client: host }, `Refused a connection from ${host}: ${reason}`)
      wire.setHandler({ data() {}, drain() {}, closed() {} })
      wire.destroy()
      return
    }
    this.#perHost.set(host, count + 1)
    if (wire.isSecure !== true) this.stats.countPlainConnection(isLoopback(host))
    this.connections.add(new ClientConnection(this, wire, host))
  }

  /** Notes that a client, of whom these are the facts, has sent what cannot be read. */
  logMalformedRequest(facts: object, { field, message }: ProtocolError): void {
    if (field === 'a frame length') this.stats.largeRequestsRejected++
    this.ports.logger.warn(
      { ...facts, reason: message },
      'Closed a connection: its bytes are not a request. A larger limit is set with jute.maxbuffer',
    )
  }

  /** Whether the connection throttle lets one more client begin. */
  takeThrottleToken(): boolean {
    return this.#tokens === undefined || this.#tokens.take(this.ports.clock.monotonic())
  }

  /** The identities that credentials prove, or undefined when they are refused, as are those of one who has too many. */
  authenticate(
    scheme: string | null,
    credentials: Uint8Array | null,
    { host, identities, certificateIdentities: certified }: ClientConnection,
  ): readonly Identity[] | undefined {
    if (scheme === 'x509') return certified.length > 0 ? certified : undefined
    const { digestAuthEnabled, superDigest } = this.settings
    if ((scheme === 'digest' && !digestAuthEnabled) || identities.length >= MAX_IDENTITIES) return undefined
    return authenticate(scheme, credentials, { remoteIp: host, superDigest })
  }

  /** Whether a client that cannot log in by SASL can do nothing here. */
  get isSaslRequired(): boolean {
    return this.#enforcedSchemes.includes('sasl')
  }

  /** The identities that the certificate of a client proves. */
  certificateIdentities({ peer }: Connection): readonly Identity[] {
    if (peer === undefined) return []
    const { settings } = this
    return identitiesOfCertificate(peer, {
      superUser: settings.x509SuperUser,
      idType: settings.x509IdType,
      sanType: settings.x509SanType,
      sanMatch: settings.x509SanMatch,
      sanExtract: settings.x509SanExtract,
      sanGroup: settings.x509SanGroup,
    })
  }

  /** Whether a client has proved what `enforce.auth.schemes` demands. */
  satisfiesEnforcedSchemes(identities: readonly Identity[]): boolean {
    const demanded = this.#enforcedSchemes
    return demanded.length === 0 || identities.some(({ scheme }) => demanded.includes(scheme))
  }

  /** An id for a new session. One that is known already, because the wall clock has gone back, is left out. */
  newSessionId(): SessionId {
    let id = this.sessionIds.next()
    while (this.sessionOf(id) !== undefined || this.tree.owners.ofSession(id).size > 0)
      id = this.sessionIds.next()
    return id
  }

  /** The connection has its session now. */
  bindSession(connection: ClientConnection): void {
    this.#bySession.set(connection.sessionId, connection)
  }

  connectionOfSession(session: SessionId): ClientConnection | undefined {
    return this.#bySession.get(session)
  }

  /** Sends every client what is left for it and closes its connection; at once when it does not read for a second. */
  async closeConnections(): Promise<void> {
    this.runTurn(() => {
      for (const connection of this.connections) connection.closeAfterFlush('Closed: the server is stopping')
    })
    if (this.connections.size > 0) {
      await new Promise<void>((resolve) => {
        this.#emptied = resolve
        this.ports.clock.after(LAST_BYTES_MS, 'clients that do not read their last bytes', resolve)
      })
    }
    for (const connection of this.connections) connection.destroy('Closed: the server is stopping')
  }

  removeConnection(connection: ClientConnection): void {
    this.connections.delete(connection)
    if (this.connections.size === 0) this.#emptied()
    this.#held.delete(connection)
    this.#reading.delete(connection)
    this.#forgetWatches(connection)
    if (this.#bySession.get(connection.sessionId) === connection) {
      this.#bySession.delete(connection.sessionId)
      this.sessions.detach(connection.sessionId)
    }
    const left = (this.#perHost.get(connection.host) ?? 1) - 1
    if (left === 0) this.#perHost.delete(connection.host)
    else this.#perHost.set(connection.host, left)
  }

  /** Has a connection read on once the tree is whole again. */
  deferReads(connection: ClientConnection): void {
    if (this.#reading.size === 0) this.tree.whenConsistent(() => this.runLater(() => this.#readOn()))
    this.#reading.add(connection)
  }

  #readOn(): void {
    const reading = [...this.#reading]
    this.#reading.clear()
    for (const connection of reading) connection.processQueue()
  }

  /** Nobody is told any more, so that this may take several turns. */
  #forgetWatches(connection: ClientConnection): void {
    if (this.watches.removeSome(connection, FORGOTTEN_IN_A_TURN)) return
    this.ports.clock.immediate(() => this.#forgetWatches(connection))
  }

  // Load

  /** Whether more writes are on their way than the server wants to hold. */
  get isOverloaded(): boolean {
    return this.pipeline.outstanding > this.#outstandingLimit()
  }

  /** Reads a connection again once the load is gone. */
  throttle(connection: ClientConnection): void {
    this.#held.add(connection)
  }

  /** Lets the connections go on that were held back. */
  releaseThrottled(): void {
    if (this.#held.size === 0 || this.isOverloaded) return
    for (const connection of this.#held) connection.resumeReading()
    this.#held.clear()
  }

  // Sessions

  /** A session, whether everybody knows it or only this server. */
  sessionOf(id: SessionId): Session | undefined {
    return this.localSessions?.get(id) ?? this.sessions.get(id)
  }

  /** A request of the session has come. */
  touchSession(session: Session): void {
    if (session.isLocal) this.localSessions!.touch(session, this.turnTime)
    else this.sessions.touch(session, this.turnTime)
  }

  #sessionBegun({ id, timeout }: Session): void {
    const connection = this.#bySession.get(id)
    if (connection !== undefined) connection.session = this.sessions.resume(id, timeout, this.turnTime)
  }

  #sessionEnded(id: SessionId, told: WriteCallback | undefined): void {
    const connection = this.#bySession.get(id)
    if (connection !== told) connection?.destroy('Closed: its session is over')
  }

  /** When `expireSessions` is to be called next, on the monotonic clock. While nothing can be written no session ends. */
  get nextExpiry(): number {
    const next = this.pipeline.isWritable ? this.sessions.nextDeadline : Infinity
    return Math.min(next, this.localSessions?.nextDeadline ?? Infinity)
  }

  /** Ends the sessions whose time is over. */
  expireSessions(): void {
    const now = this.ports.clock.monotonic()
    endSessionsInSlices(this, this.localSessions?.expire(now) ?? [], (session) => {
      this.#isOver(session)
      this.localSessions!.remove(session.id)
    })
    if (this.pipeline.isWritable)
      endSessionsInSlices(this, this.sessions.expire(now), (session) => this.#expire(session))
  }

  #expire(session: Session): void {
    // A client that this server does not read cannot show that it lives. Without space its end cannot be stored now.
    if (this.connectionOfSession(session.id)?.isThrottled || !this.pipeline.isWritable) {
      this.sessions.touch(session, this.turnTime)
      return this.sessions.reopen(session)
    }
    this.ports.logger.info(
      { session: formatSessionId(session.id), timeoutMs: session.timeout },
      'A session expired',
    )
    this.#isOver(session)
    this.pipeline.closeSession(session.id, 0, undefined, this.turnTime)
  }

  #isOver({ id }: Session): void {
    this.stats.sessionsExpired++
    this.connectionOfSession(id)?.destroy('Closed: its session expired')
  }
}

/** Schemes one of which a client must have proved; none when nothing is demanded. */
function enforcedSchemes(settings: ServerSettings): readonly string[] {
  if (settings.requireSasl) return ['sasl']
  return settings.enforceAuthEnabled ? settings.enforceAuthSchemes : []
}

function saslUsers({ saslUsers, saslSuperPassword }: ServerSettings): ReadonlyMap<string, string> {
  const users = new Map(Object.entries(saslUsers))
  if (saslSuperPassword !== undefined && users.has('super')) users.set('super', saslSuperPassword)
  return users
}

const isLoopback = (host: string): boolean => host === '::1' || host.startsWith('127.')

/** Connections that are accepted in all: what is configured, and no more than leaves the log its file descriptors. */
function mostConnections(configured: number, descriptors: number): number {
  const possible = descriptors > 0 ? Math.max(1, descriptors - RESERVED_DESCRIPTORS) : Infinity
  const most = Math.min(configured > 0 ? configured : Infinity, possible)
  return most === Infinity ? 0 : most
}
