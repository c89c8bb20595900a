import { Rooms, Writer, type ProtocolError } from '@zabra/protocol'
import type { Connection, Handshakes, Ports } from '@zabra/runtime'
import {
  AclRules,
  authenticate,
  canonicalIp,
  certifiedIdentities,
  saslScheme,
  x509Scheme,
} from '../core/auth/index.ts'
import { Preparer, type Reconfigure } from '../core/prepare/index.ts'
import { Reads } from '../core/reads/index.ts'
import { SessionIds, SessionTracker, type Session, type Sessions } from '../core/sessions/index.ts'
import type { QuotaBreach, Tree } from '../core/tree/index.ts'
import type { Identity, SessionId } from '../core/types.ts'
import { Firing, Watches } from '../core/watches/index.ts'
import { PartsPacker } from '../log/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { FourLetterWords, RoleFigures } from '../admin/index.ts'
import { ClientConnection } from './connection.ts'
import { DirtyList } from './dirty.ts'
import { endInSteps } from './expiry.ts'
import { hex } from './hex.ts'
import type { ServedPort } from './listeners.ts'
import { ServerStats } from './stats.ts'
import { TokenBucket } from './token-bucket.ts'
import type { Requester, Writes, WritesKit } from './writes/index.ts'

export interface CoreParts {
  readonly settings: ServerSettings
  readonly ports: Ports
  readonly tree: Tree
  readonly sessions: Sessions
  /** Makes what the role does with everything that is not a read. */
  readonly writes: (kit: WritesKit<ClientConnection>) => Writes
  /** Whether new sessions are known to this server alone (`localSessionsEnabled`); always so where it is read-only. */
  readonly localSessions?: boolean
  /** Whether only clients are served that want no more than to look. */
  readonly readOnly?: boolean
  /** Whether changes of the ensemble are taken (`reconfigEnabled`), and who judges them; only where this server decides. */
  readonly reconfigEnabled?: boolean
  readonly reconfigure?: Reconfigure
  /** What words say of the role; that of a server that stands alone otherwise. */
  readonly role?: RoleFigures
  /** Go on over several terms; new ones otherwise. */
  readonly stats?: ServerStats
  readonly sessionIds?: SessionIds
  /** How many writes on their way are too many, at this moment; `globalOutstandingLimit` by default. */
  readonly outstandingLimit?: () => number
  /** Called once when something that must hold does not. The server is over then. */
  readonly failed: (error: unknown) => void
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
export class ServerCore {
  readonly settings: ServerSettings
  readonly ports: Ports
  readonly tree: Tree
  readonly sessions: Sessions
  /** Sessions that only this server knows; undefined when there are none by the settings. */
  readonly locals: SessionTracker | undefined
  readonly readOnly: boolean
  readonly role: RoleFigures
  readonly sessionIds: SessionIds
  readonly watches = new Watches<ClientConnection>()
  readonly firing: Firing<ClientConnection>
  readonly reads: Reads<ClientConnection>
  readonly writes: Writes
  readonly stats: ServerStats
  /** Takes what nobody reads, such as the empty body of a reply. */
  readonly scratch = new Writer(64)
  /** Where replies and requests that wait are written. */
  readonly rooms = new Rooms()
  readonly connections = new Set<ClientConnection>()
  words!: FourLetterWords
  accepting = true
  /** The port of a key, -1 when it is not served. */
  portOf: (key: ServedPort['key']) => number = () => -1
  /** What became of handshakes of TLS. */
  handshakes: () => Handshakes = () => ({ open: 0, exceeded: 0, failed: 0 })
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
  readonly #dirty: DirtyList
  /** Called when the last connection is gone. */
  #emptied: () => void = () => {}
  #depth = 0
  #stopped = false

  constructor({
    settings,
    ports,
    tree,
    sessions,
    writes,
    localSessions = false,
    readOnly = false,
    reconfigEnabled = false,
    reconfigure,
    role = { mode: 'standalone' },
    stats = new ServerStats(),
    sessionIds = new SessionIds(settings.serverId, ports.clock.wall()),
    outstandingLimit = () => settings.globalOutstandingLimit,
    failed,
  }: CoreParts) {
    this.settings = settings
    this.ports = ports
    this.#dirty = new DirtyList({
      later: (action) => this.later(action),
      together: (action) =>
        ports.network.together === undefined ? action() : ports.network.together(action),
    })
    this.tree = tree
    this.sessions = sessions
    this.stats = stats
    this.role = role
    this.readOnly = readOnly
    const now = ports.clock.monotonic()
    if (localSessions || readOnly) this.locals = new SessionTracker(settings.tickTimeMs, now, { local: true })
    this.#failed = failed
    this.#mostConnections = mostConnections(settings.maxCnxns, ports.system.descriptors().max)
    this.sessionIds = sessionIds
    this.#outstandingLimit = outstandingLimit
    ports.system.forgetHolds?.()
    const servesTls = settings.secureClientPort !== undefined || settings.webSocketSecure
    const schemes = new Map([
      ...(servesTls ? [['x509', x509Scheme] as const] : []),
      ...(settings.saslAclScheme ? [['sasl', saslScheme] as const] : []),
    ])
    const acls = new AclRules({ skipACL: settings.skipAcl, schemes })
    this.firing = new Firing(this.watches, acls)
    this.reads = new Reads({ tree, acls, watches: this.watches, firing: this.firing })
    this.writes = writes({
      tree,
      firing: this.firing,
      clock: ports.clock,
      sessions,
      locals: this.locals,
      preparer: (view) =>
        new Preparer({
          tree,
          acls,
          sessions: view,
          enforceQuota: settings.enforceQuota,
          reconfigEnabled,
          pack: (bytes) => new PartsPacker(bytes, tree.store),
          ...(reconfigure === undefined ? {} : { reconfigure }),
          quotaExceeded: (subject, breach) => this.#warnOfQuota(subject, breach),
        }),
      later: (action) => this.later(action),
      sessionBegun: (session) => this.#sessionBegun(session),
      sessionEnded: (id, told) => this.#sessionEnded(id, told),
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
  turn(action: () => void): void {
    if (this.#stopped) return
    if (this.#depth++ === 0) this.turnTime = this.ports.clock.monotonic()
    try {
      action()
      if (this.#depth === 1) {
        // Wherever a write has come to its end, here or at the leader, those that were held back may go on.
        this.releaseHeld()
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
  end(reason: string): void {
    this.accepting = false
    this.writes.end()
    for (const connection of this.connections) connection.destroy(reason)
    this.#stopped = true
  }

  /** Takes no further entries. */
  stop(): void {
    this.#stopped = true
  }

  /** Runs something in a turn of its own, after the I/O that is ready now. */
  later(action: () => void): void {
    this.ports.clock.soon(() => this.turn(action))
  }

  markDirty(connection: ClientConnection): void {
    this.#dirty.mark(connection)
  }

  /** The same for one that is told of a change. */
  markTold(connection: ClientConnection): void {
    this.#dirty.tell(connection)
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
    const reason = !this.accepting
      ? 'the server is stopping'
      : maxClientCnxns > 0 && count >= maxClientCnxns
        ? `its address has ${count} connections already and maxClientCnxns is ${maxClientCnxns}`
        : maxCnxns > 0 && this.connections.size >= maxCnxns
          ? `there are ${this.connections.size} connections, and maxCnxns and the file descriptors of the process allow ${maxCnxns}`
          : undefined
    if (reason !== undefined) {
      this.stats.connectionsRejected++
      this.ports.logger.warn({ client: host }, `Refused a connection from ${host}: ${reason}`)
      wire.listen({ data() {}, drain() {}, closed() {} })
      wire.destroy()
      return
    }
    this.#perHost.set(host, count + 1)
    if (wire.secure !== true) this.stats.countPlain(isLoopback(host))
    this.connections.add(new ClientConnection(this, wire, host))
  }

  /** Notes that a client, of whom these are the facts, has sent what cannot be read. */
  malformed(facts: object, { field, message }: ProtocolError): void {
    if (field === 'a frame length') this.stats.largeRequestsRejected++
    this.ports.logger.warn(
      { ...facts, reason: message },
      'Closed a connection: its bytes are not a request. A larger limit is set with jute.maxbuffer',
    )
  }

  /** Whether the connection throttle lets one more client begin. */
  admitSession(): boolean {
    return this.#tokens === undefined || this.#tokens.take(this.ports.clock.monotonic())
  }

  /** The identities that credentials prove, or undefined when they are refused, as are those of one who has too many. */
  prove(
    scheme: string | null,
    credentials: Uint8Array | null,
    { host, identities, certified }: ClientConnection,
  ): readonly Identity[] | undefined {
    if (scheme === 'x509') return certified.length > 0 ? certified : undefined
    const { digestAuthEnabled, superDigest } = this.settings
    if ((scheme === 'digest' && !digestAuthEnabled) || identities.length >= MAX_IDENTITIES) return undefined
    return authenticate(scheme, credentials, { remoteIp: host, superDigest })
  }

  /** Whether a client that cannot log in by SASL can do nothing here. */
  get demandsSasl(): boolean {
    return this.#enforcedSchemes.includes('sasl')
  }

  /** The identities that the certificate of a client proves. */
  certified({ peer }: Connection): readonly Identity[] {
    if (peer === undefined) return []
    const { settings } = this
    return certifiedIdentities(peer, {
      superUser: settings.x509SuperUser,
      idType: settings.x509IdType,
      sanType: settings.x509SanType,
      sanMatch: settings.x509SanMatch,
      sanExtract: settings.x509SanExtract,
      sanGroup: settings.x509SanGroup,
    })
  }

  /** Whether a client has proved what `enforce.auth.schemes` demands. */
  satisfies(identities: readonly Identity[]): boolean {
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
  bind(connection: ClientConnection): void {
    this.#bySession.set(connection.sessionId, connection)
  }

  connectionOf(session: SessionId): ClientConnection | undefined {
    return this.#bySession.get(session)
  }

  /** Sends every client what is left for it and closes its connection; at once when it does not read for a second. */
  async closeConnections(): Promise<void> {
    this.turn(() => {
      for (const connection of this.connections) connection.finish('Closed: the server is stopping')
    })
    if (this.connections.size > 0) {
      await new Promise<void>((resolve) => {
        this.#emptied = resolve
        this.ports.clock.after(LAST_BYTES_MS, 'clients that do not read their last bytes', resolve)
      })
    }
    for (const connection of this.connections) connection.destroy('Closed: the server is stopping')
  }

  forget(connection: ClientConnection): void {
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
  readLater(connection: ClientConnection): void {
    if (this.#reading.size === 0) this.tree.whenWhole(() => this.later(() => this.#readOn()))
    this.#reading.add(connection)
  }

  #readOn(): void {
    const reading = [...this.#reading]
    this.#reading.clear()
    for (const connection of reading) connection.serve()
  }

  /** Nobody is told any more, so that this may take several turns. */
  #forgetWatches(connection: ClientConnection): void {
    if (this.watches.removeSome(connection, FORGOTTEN_IN_A_TURN)) return
    this.ports.clock.soon(() => this.#forgetWatches(connection))
  }

  // Load

  /** Whether more writes are on their way than the server wants to hold. */
  get overloaded(): boolean {
    return this.writes.outstanding > this.#outstandingLimit()
  }

  /** Reads a connection again once the load is gone. */
  hold(connection: ClientConnection): void {
    this.#held.add(connection)
  }

  /** Lets the connections go on that were held back. */
  releaseHeld(): void {
    if (this.#held.size === 0 || this.overloaded) return
    for (const connection of this.#held) connection.release()
    this.#held.clear()
  }

  // Sessions

  /** A session, whether everybody knows it or only this server. */
  sessionOf(id: SessionId): Session | undefined {
    return this.locals?.get(id) ?? this.sessions.get(id)
  }

  /** A request of the session has come. */
  touch(session: Session): void {
    if (session.local) this.locals!.touch(session, this.turnTime)
    else this.sessions.touch(session, this.turnTime)
  }

  #sessionBegun({ id, timeout }: Session): void {
    const connection = this.#bySession.get(id)
    if (connection !== undefined) connection.session = this.sessions.resume(id, timeout, this.turnTime)
  }

  #sessionEnded(id: SessionId, told: Requester | undefined): void {
    const connection = this.#bySession.get(id)
    if (connection !== told) connection?.destroy('Closed: its session is over')
  }

  /** When `expireSessions` is to be called next, on the monotonic clock. While nothing can be written no session ends. */
  get nextExpiry(): number {
    const next = this.writes.writable ? this.sessions.nextDeadline : Infinity
    return Math.min(next, this.locals?.nextDeadline ?? Infinity)
  }

  /** Ends the sessions whose time is over. */
  expireSessions(): void {
    const now = this.ports.clock.monotonic()
    endInSteps(this, this.locals?.expire(now) ?? [], (session) => {
      this.#isOver(session)
      this.locals!.remove(session.id)
    })
    if (this.writes.writable) endInSteps(this, this.sessions.expire(now), (session) => this.#expire(session))
  }

  #expire(session: Session): void {
    // A client that this server does not read cannot show that it lives. Without space its end cannot be stored now.
    if (this.connectionOf(session.id)?.isHeld || !this.writes.writable) {
      this.sessions.touch(session, this.turnTime)
      return this.sessions.reopen(session)
    }
    this.ports.logger.info({ session: hex(session.id), timeoutMs: session.timeout }, 'A session expired')
    this.#isOver(session)
    this.writes.closeSession(session.id, 0, undefined, this.turnTime)
  }

  #isOver({ id }: Session): void {
    this.stats.sessionsExpired++
    this.connectionOf(id)?.destroy('Closed: its session expired')
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
