import type { Incarnation, Prng, ServerEndpoint } from '@zabra/testing'
import { FramedConnection, type FrameHandler } from '@zabra/testkit'
import {
  DigestMd5Client,
  ErrorCode,
  EventType,
  nonceSource,
  OpCode,
  readConnectResponse,
  type Reader,
  readWatcherEvent,
  writeAuthPacket,
  writeSetWatches,
  writeSetWatches2,
  Xid,
} from '@zabra/protocol'
import type { Cancel, Connection } from '@zabra/runtime'
import { PASSWORDS, userOf } from '../history/acl.ts'
import { connectAs } from '../simulation/certificates.ts'
import {
  hexOf,
  isWrite,
  type History,
  type Operation,
  type WatchesReset,
  type Request,
  type WatchKind,
} from '../history/records.ts'
import { opCodeOf, readResult, writeRequest } from './codec.ts'

export interface SessionClientOptions {
  readonly name: string
  readonly incarnation: Incarnation
  readonly prng: Prng
  readonly history: History
  readonly servers: () => readonly ServerEndpoint[]
  readonly timeoutMs: number
  /** Credentials (`name:password`) sent first on each connection. */
  readonly credentials?: string
  /** The user that logs in by SASL first on each connection. */
  readonly login?: string
  /** The user whose certificate it shows, on the ports with TLS. */
  readonly certificate?: string
  /** Returns a number for the next connection, unique over all clients. */
  readonly nextConnection: () => number
  /**
   * Whether read-only servers are acceptable. The client stays on one for a moment; when no other server resumes the
   * session it starts a new one, keeping the last zxid it has seen.
   */
  readonly readOnly?: boolean
}

/** What resumes a session. */
export interface SessionTicket {
  readonly sessionId: bigint
  readonly password: Uint8Array
  readonly lastZxidSeen: bigint
}

/** Consecutive refusals after which a read-only client starts a new session. */
const REFUSALS = 4

type Armed = 'data' | 'exist' | 'child' | 'persistent' | 'recursive'

/** The watches that a removal of each kind removes. */
const REMOVED: Readonly<Record<WatchKind, readonly Armed[]>> = {
  any: ['data', 'exist', 'child', 'persistent', 'recursive'],
  data: ['data', 'exist'],
  children: ['child'],
  persistent: ['persistent'],
  recursive: ['recursive'],
}

/**
 * A client that speaks the protocol itself and records everything: the zxid of each reply, the order of replies and
 * notifications, each connection. It resumes its session as ZooKeeper clients do, and starts a new one when the session
 * has ended.
 */
export class SessionClient {
  readonly name: string
  readonly #options: SessionClientOptions
  readonly #armed: Readonly<Record<Armed, Set<string>>> = {
    data: new Set(),
    exist: new Set(),
    child: new Set(),
    persistent: new Set(),
    recursive: new Set(),
  }
  #session = 0n
  /** The id of the session as histories have it. */
  #sessionName = '0'
  #password: Uint8Array = new Uint8Array(16)
  #timeoutMs: number
  #lastZxidSeen = 0
  #xid = 0
  #serverIndex = -1
  #connection: ClientConnection | undefined
  #stopped = false
  /** Whether the session exists on one read-only server only. */
  #hasReadOnlySession = false
  #refusals = 0
  /** Whether no connection has been attached to the session yet. */
  #isNewSession = false
  /** When the first write of this session was answered. */
  #firstWriteAt = Infinity
  /** Whether the servers have stored which user the session belongs to: they do so with its first writes. */
  #isOwned = false
  /** Called when a request is answered or its outcome is unknown. */
  onEnd: (operation: Operation) => void = () => {}
  /** Called when the session is attached and requests may be sent. */
  onAttached: () => void = () => {}

  constructor(options: SessionClientOptions) {
    this.#options = options
    this.name = options.name
    this.#timeoutMs = options.timeoutMs
  }

  get session(): string {
    return this.#sessionName
  }
  get server(): string {
    return this.#connection?.endpoint.name ?? ''
  }
  /** Whether requests can be sent now. */
  get isAttached(): boolean {
    return this.#connection?.isAttached === true
  }
  /** Whether it is attached to a server with a quorum. */
  get isAttachedToQuorum(): boolean {
    return this.isAttached && this.#connection?.isReadOnly === false
  }
  get inFlight(): number {
    return this.#connection?.pending.length ?? 0
  }
  get lastSeen(): number {
    return this.#lastZxidSeen
  }
  get hasCertificate(): boolean {
    return this.#options.certificate !== undefined
  }
  /** What resumes the session, once it belongs to the user who has logged in or has a certificate. */
  get ownedTicket(): SessionTicket | undefined {
    const { login, certificate } = this.#options
    const isOwned = certificate === undefined ? login !== undefined && this.#isOwned : this.#session !== 0n
    if (!isOwned) return undefined
    return {
      sessionId: this.#session,
      password: this.#password,
      lastZxidSeen: BigInt(this.#lastZxidSeen),
    }
  }

  start(): void {
    this.#scheduleConnect(0)
  }

  /** Reconnects to another server; the outcome of requests in flight is unknown. */
  reconnect(): void {
    if (this.#connection !== undefined) this.#drop(this.#connection, 0)
  }

  /** Authenticates again between requests. */
  authenticate(): void {
    if (this.#connection?.isAttached === true && !this.#connection.isClosing)
      this.#authenticate(this.#connection)
  }

  /** Disconnects without closing the session, which then expires. */
  abandon(): void {
    this.#stopped = true
    if (this.#connection !== undefined) this.#drop(this.#connection, 0)
  }

  /** Sends a request and records it. Returns undefined while not attached. */
  send(request: Request): Operation | undefined {
    const connection = this.#connection
    if (connection?.isAttached !== true || connection.isClosing) return undefined
    const xid = ++this.#xid
    const { history, name, incarnation } = this.#options
    const operation = history.begin({
      client: name,
      session: this.session,
      connection: connection.id,
      server: connection.endpoint.name,
      xid,
      user: this.#options.login ?? this.#options.certificate ?? userOf(this.#options.credentials),
      isReadOnly: connection.isReadOnly,
      request,
      invoked: incarnation.host.world.now,
    })
    connection.pending.push(operation)
    connection.sendRequest(xid, opCodeOf(request), (w) => writeRequest(w, request))
    if (request.op === 'close') connection.isClosing = true
    return operation
  }

  #scheduleConnect(ms: number): void {
    if (this.#stopped) return
    this.#options.incarnation.platform.clock.after(ms, 'dial', () => void this.#connect())
  }

  async #connect(): Promise<void> {
    if (this.#stopped) return
    const servers = this.#options.servers()
    this.#serverIndex =
      this.#serverIndex < 0
        ? this.#options.prng.below(servers.length)
        : (this.#serverIndex + 1) % servers.length
    const endpoint = servers[this.#serverIndex % servers.length]!
    const { certificate, incarnation } = this.#options
    const { clock } = incarnation.platform
    const give = new AbortController()
    const cancel = clock.after(this.#timeoutMs / 3, 'dial limit', () => give.abort())
    try {
      const connection = await connectAs(incarnation, endpoint, certificate, give.signal)
      if (this.#stopped) return connection.destroy()
      this.#attach(endpoint, connection)
    } catch {
      this.#scheduleConnect(this.#options.prng.between(10, 300))
    } finally {
      cancel()
    }
  }

  #attach(endpoint: ServerEndpoint, stream: Connection): void {
    const connection: ClientConnection = new ClientConnection(
      this.#options.nextConnection(),
      endpoint,
      stream,
      {
        frame: (reader) => this.#frame(connection, reader),
        closed: () => this.#drop(connection),
      },
    )
    this.#connection = connection
    connection.sendHandshake({
      timeoutMs: this.#options.timeoutMs,
      sessionId: this.#session,
      password: this.#password,
      lastZxidSeen: BigInt(this.#lastZxidSeen),
      readOnly: this.#options.readOnly === true,
    })
    this.#startHeartbeats(connection)
  }

  /** Sends pings, and disconnects from a server that is silent for two thirds of the timeout. */
  #startHeartbeats(connection: ClientConnection): void {
    const { clock } = this.#options.incarnation.platform
    connection.lastHeardAt = clock.monotonic()
    const tick = (): void => {
      if (this.#connection !== connection) return
      if (clock.monotonic() - connection.lastHeardAt > (this.#timeoutMs * 2) / 3)
        return this.#drop(connection)
      if (connection.isAttached && !connection.isClosing) {
        connection.pings.push(this.#options.incarnation.host.world.now)
        connection.sendRequest(Xid.ping, OpCode.ping)
      }
      connection.cancelHeartbeat = clock.after(this.#timeoutMs / 3, 'beat', tick)
    }
    connection.cancelHeartbeat = clock.after(this.#timeoutMs / 3, 'beat', tick)
  }

  #drop(connection: ClientConnection, again = this.#options.prng.between(1, 100)): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    connection.cancelHeartbeat()
    connection.destroy()
    this.#maybeForgetSession(connection)
    for (const operation of connection.pending) {
      operation.outcome = 'unknown'
      // Only the server knows whether a close took effect: the next connection asks for the same session.
      this.onEnd(operation)
    }
    this.#scheduleConnect(again)
  }

  /**
   * Decides whether to give up a session that no other server may resume: one of a read-only server, or one refused
   * repeatedly.
   */
  #maybeForgetSession(connection: ClientConnection): void {
    if (this.#options.readOnly !== true || this.#session === 0n) return
    this.#refusals = connection.isAttached ? 0 : this.#refusals + 1
    const gives = this.#hasReadOnlySession ? this.#options.prng.chance(0.7) : this.#refusals >= REFUSALS
    if (gives) this.#forgetSession(this.#lastZxidSeen)
  }

  #frame(connection: ClientConnection, reader: Reader): void {
    if (this.#connection !== connection) return
    connection.lastHeardAt = this.#options.incarnation.platform.clock.monotonic()
    try {
      if (connection.isAttached) this.#handleReply(connection, reader)
      else if (connection.login !== undefined) this.#handleLoginReply(connection, connection.login, reader)
      else this.#handleConnectResponse(connection, reader)
    } catch (error) {
      this.#reportViolation(connection, `sent a frame that cannot be read: ${String(error)}`)
      this.#drop(connection)
    }
  }

  #handleConnectResponse(connection: ClientConnection, reader: Reader): void {
    const { sessionId, passwd, timeOut, readOnly = false } = readConnectResponse(reader)
    const { history, incarnation, login, prng } = this.#options
    if (timeOut === 0) {
      const { now } = incarnation.host.world
      history.events.push({ kind: 'ended', ...this.#placeOf(connection), session: this.session, at: now })
      this.#forgetSession()
      return this.#drop(connection)
    }
    const isNew = this.#session === 0n
    if (!isNew && sessionId !== this.#session)
      this.#reportViolation(connection, `answered with another session, ${hexOf(sessionId)}`)
    this.#session = sessionId
    this.#sessionName = hexOf(sessionId)
    this.#password = passwd ?? new Uint8Array(16)
    this.#timeoutMs = timeOut
    this.#isNewSession ||= isNew
    connection.isReadOnly = readOnly
    if (isNew) this.#hasReadOnlySession = readOnly
    if (readOnly && this.#options.readOnly !== true)
      this.#reportViolation(connection, 'is read-only, which was not requested')
    if (login === undefined) return this.#attached(connection)
    connection.login = new DigestMd5Client({
      username: login,
      password: PASSWORDS[login]!,
      cnonce: nonceSource((length) => prng.bytes(length)),
    })
    void this.#logIn(connection, connection.login)
  }

  #handleLoginReply(connection: ClientConnection, login: DigestMd5Client, reader: Reader): void {
    reader.int()
    reader.longNumber()
    const err = reader.int()
    if (err === 0) return void this.#logIn(connection, login, reader.buffer())
    this.#reportViolation(connection, `refused a login with ${err}`)
    this.#drop(connection)
  }

  async #logIn(
    connection: ClientConnection,
    login: DigestMd5Client,
    challenge?: Uint8Array | null,
  ): Promise<void> {
    const token = await login.step(challenge)
    if (this.#connection !== connection) return
    if (token === undefined) this.#attached(connection)
    else connection.sendRequest(++this.#xid, OpCode.sasl, (w) => w.buffer(token))
  }

  /** The session is attached to a connection, which may send requests. */
  #attached(connection: ClientConnection): void {
    const { history, incarnation } = this.#options
    const { isReadOnly } = connection
    connection.isAttached = true
    if (isReadOnly)
      incarnation.platform.clock.after(this.#options.prng.between(100, 1500), 'look elsewhere', () =>
        this.#drop(connection),
      )
    history.events.push({
      kind: 'attached',
      ...this.#placeOf(connection),
      at: incarnation.host.world.now,
      session: this.session,
      timeoutMs: this.#timeoutMs,
      isNew: this.#isNewSession,
      seen: this.#lastZxidSeen,
      ...(isReadOnly ? { isReadOnly } : {}),
    })
    this.#isNewSession = false
    this.#authenticate(connection)
    this.#resetWatches(connection)
    this.onAttached()
  }

  #placeOf({ id, endpoint }: ClientConnection): { client: string; connection: number; server: string } {
    return { client: this.name, connection: id, server: endpoint.name }
  }

  #authenticate(connection: ClientConnection): void {
    const { credentials } = this.#options
    if (credentials === undefined) return
    const auth = new TextEncoder().encode(credentials)
    connection.sendRequest(Xid.auth, OpCode.auth, (w) =>
      writeAuthPacket(w, { type: 0, scheme: 'digest', auth }),
    )
  }

  #resetWatches(connection: ClientConnection): void {
    const { data, exist, child, persistent, recursive } = this.#armed
    if (Object.values(this.#armed).every(({ size }) => size === 0)) return
    connection.pendingReset = {
      since: this.#lastZxidSeen,
      requested: { data: [...data], exist: [...exist], child: [...child] },
    }
    const lasting = persistent.size + recursive.size > 0
    const request = {
      relativeZxid: BigInt(this.#lastZxidSeen),
      dataWatches: connection.pendingReset.requested.data,
      existWatches: connection.pendingReset.requested.exist,
      childWatches: connection.pendingReset.requested.child,
      persistentWatches: [...persistent],
      persistentRecursiveWatches: [...recursive],
    }
    connection.sendRequest(Xid.setWatches, lasting ? OpCode.setWatches2 : OpCode.setWatches, (w) =>
      lasting ? writeSetWatches2(w, request) : writeSetWatches(w, request),
    )
  }

  #handleReply(connection: ClientConnection, reader: Reader): void {
    const { history, incarnation } = this.#options
    const { now } = incarnation.host.world
    const xid = reader.int()
    const zxid = reader.longNumber()
    const err = reader.int()
    if (xid === Xid.ping)
      return void history.pings.push({ session: this.session, sent: connection.pings.shift()! })
    if (xid === Xid.notification) return this.#handleNotification(connection, reader)
    if (xid === Xid.auth) {
      if (err !== 0) this.#reportViolation(connection, `refused a password with ${err}`)
      return
    }
    if (zxid > 0) this.#lastZxidSeen = Math.max(this.#lastZxidSeen, zxid)
    if (xid === Xid.setWatches) {
      history.events.push({
        kind: 'rearmed',
        client: this.name,
        session: this.session,
        connection: connection.id,
        at: now,
        ...connection.pendingReset!,
        zxid,
      })
      return
    }
    const operation = connection.pending.shift()
    if (operation === undefined || operation.xid !== xid) {
      this.#reportViolation(connection, `answered request ${xid} when ${operation?.xid ?? 'none'} was next`)
      return this.#drop(connection)
    }
    const { request } = operation
    // The reply to a failed multi lists the result of each operation.
    const hasBody = err === 0 || (request.op === 'multi' && reader.remaining > 0)
    const { result, results } = hasBody ? readResult(reader, request) : { result: { err }, results: [] }
    history.complete(operation, now, zxid, err === 0 ? result : { ...result, err }, results)
    if (isWrite(request) && err === 0) {
      this.#isOwned ||= operation.invoked > this.#firstWriteAt
      this.#firstWriteAt = Math.min(this.#firstWriteAt, now)
    }
    this.#armWatch(operation)
    if (request.op === 'close' && err === 0) {
      this.#forgetSession()
      this.#drop(connection)
    }
    this.onEnd(operation)
  }

  #armWatch({ request, result }: Operation): void {
    if (request.op === 'addWatch' && result.err === 0)
      this.#armed[request.recursive ? 'recursive' : 'persistent'].add(request.path)
    if (request.op === 'removeWatches' && result.err === 0)
      for (const kind of REMOVED[request.watches]) this.#armed[kind].delete(request.path)
    if (request.op !== 'get' && request.op !== 'exists' && request.op !== 'children') return
    if (!request.watch) return
    if (request.op === 'exists' && result.err === ErrorCode.NONODE) this.#armed.exist.add(request.path)
    else if (result.err === 0) this.#armed[request.op === 'children' ? 'child' : 'data'].add(request.path)
  }

  #handleNotification(connection: ClientConnection, reader: Reader): void {
    const { type, path } = readWatcherEvent(reader)
    const { history, incarnation } = this.#options
    const { data, exist, child } = this.#armed
    if (type !== EventType.NodeChildrenChanged) {
      data.delete(path!)
      exist.delete(path!)
    }
    if (type === EventType.NodeChildrenChanged || type === EventType.NodeDeleted) child.delete(path!)
    history.events.push({
      kind: 'notice',
      client: this.name,
      session: this.session,
      connection: connection.id,
      at: incarnation.host.world.now,
      type,
      path: path!,
    })
  }

  /** Forgets a session that has ended or is given up; the next connection starts a new one with this last zxid. */
  #forgetSession(seen = 0): void {
    this.#session = 0n
    this.#sessionName = '0'
    this.#password = new Uint8Array(16)
    this.#lastZxidSeen = seen
    this.#hasReadOnlySession = false
    this.#refusals = 0
    this.#isNewSession = false
    this.#firstWriteAt = Infinity
    this.#isOwned = false
    for (const paths of Object.values(this.#armed)) paths.clear()
  }

  #reportViolation(connection: ClientConnection, what: string): void {
    this.#options.history.violations.push(
      `${connection.endpoint.name} ${what} (client ${this.name}, session ${this.session})`,
    )
  }
}

/** One connection of a client. */
class ClientConnection extends FramedConnection {
  readonly id: number
  readonly endpoint: ServerEndpoint
  readonly pending: Operation[] = []
  /** When the pings without an answer were sent. */
  readonly pings: number[] = []
  isAttached = false
  isReadOnly = false
  isClosing = false
  /** The login in progress, before the connection is attached. */
  login: DigestMd5Client | undefined
  lastHeardAt = 0
  pendingReset: Pick<WatchesReset, 'since' | 'requested'> | undefined
  cancelHeartbeat: Cancel = () => {}

  constructor(id: number, endpoint: ServerEndpoint, connection: Connection, handler: FrameHandler) {
    super(connection, handler)
    this.id = id
    this.endpoint = endpoint
  }
}
