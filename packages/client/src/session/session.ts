import { Reader, Xid, type ConnectRequest, type ConnectResponse } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import {
  AuthFailedError,
  ClosedError,
  terminalErrorFor,
  closeReason,
  ConnectFailedError,
  SessionExpiredError,
  type ZooKeeperError,
} from '../errors.ts'
import { toBinaryString, fromBinaryString } from '../bytes.ts'
import { errorOf } from '../error-of.ts'
import { noop } from '../noop.ts'
import { attemptDelay, attemptTimeout, disconnectDelay } from '../servers/connect-delay.ts'
import { addressText, isSameServer, isSameServerSet } from '../servers/connect-string.ts'
import { HostProvider, type ConnectedServer, type Candidate } from '../servers/host-provider.ts'
import type { ServerAddress } from '../platform.ts'
import type { ClientStats } from '../client-api.ts'
import type { AuthInfo, ConnectionState, SessionCredentials, StateChange } from '../types.ts'
import { readEvent, watchKinds, WatchRegistry } from '../watches/watch-registry.ts'
import { WatchRestorer } from '../watches/watch-restorer.ts'
import { permanentReason } from './connect-failure.ts'
import { ConnectionAttempt, type AttemptCallbacks } from './connection-attempt.ts'
import { closeSession, requestSessionClose } from './close-session.ts'
import { Heartbeat, type HeartbeatCallbacks } from './heartbeat.ts'
import { Identities } from './identities.ts'
import { LastZxid } from './last-zxid.ts'
import { Lease } from './lease.ts'
import { SaslLogin } from './sasl-login.ts'
import { callObserver } from './observe.ts'
import type { ReadBatcher } from './read-batcher.ts'
import { ReadWriteSearch } from './read-write-search.ts'
import type { SessionOptions } from './options.ts'
import { RequestDispatcher, type RequestOwner } from './request-dispatcher.ts'
import { StateNotifier, type StateCallbacks } from './state-notifier.ts'
import type { FramedConnection, FramedConnectionHandler } from './framed-connection.ts'

/** Maximum delay between two attempts of a client with a session, as a share of its timeout. */
const MAX_WAIT_SHARE = 1 / 3
/** Frames are decoded within one call, so all sessions share a reader. */
const sharedReader = new Reader()
const NO_PASSWORD = '\0'.repeat(16)
const NO_BYTES = fromBinaryString(NO_PASSWORD)

interface EstablishedConnection {
  readonly connection: FramedConnection
  readonly server: ServerAddress
  readonly readOnly: boolean
  readonly isNewSession: boolean
}

/**
 * The client side of a session: connects, sends heartbeats, moves between servers, and renews the session. A state
 * machine driven by bytes, timers and calls; it never blocks.
 */
export class Session
  implements AttemptCallbacks, HeartbeatCallbacks, RequestOwner, StateCallbacks, FramedConnectionHandler
{
  readonly options: SessionOptions
  readonly hostProvider: HostProvider
  #watches: WatchRegistry | undefined
  readonly dispatcher: RequestDispatcher
  readonly lease: Lease
  readonly states: StateNotifier
  /** Created at first use. */
  #closed: Promise<Error | undefined> | undefined
  #settleClosed: ((reason: Error | undefined) => void) | undefined
  readonly #heartbeat: Heartbeat
  /** Set only with the option `readOnly`. */
  #search: ReadWriteSearch | undefined

  #order = 0
  #generation = 1
  /** Whether the session of the current generation has not been granted yet. */
  #isGrantPending = true
  #id = 0n
  /** One character per byte: a Uint8Array would take five times the memory. */
  #password = NO_PASSWORD
  #timeout: number
  readonly #lastZxid = new LastZxid()
  #connection: FramedConnection | undefined
  #attempt: ConnectionAttempt | undefined
  #connections = 0
  /** Bytes of the connections before the current one. */
  #sentBytes = 0
  #receivedBytes = 0
  /** The round of the last attempt. */
  #lastRound = 0
  #connectedServer: ConnectedServer | undefined
  /** When the current or last connection was established. */
  #connectedAt = 0
  #cancelWait: Cancel = noop
  #cancelExpiry: Cancel = noop
  #cancelDrain: Cancel = noop
  /** The client disconnects in order to move to another server. */
  #isMoving = false
  /** Set only if the client has identities. */
  #identities: Identities | undefined
  /** Set only if the client had watches when it connected. */
  #watchRestorer: WatchRestorer | undefined
  #saslLogin: SaslLogin | undefined
  /** The last failed attempt, until one succeeds. */
  lastFailure: { readonly server: string; readonly error: Error } | undefined
  /** Attempts that have failed since the last connection. */
  #failedAttempts = 0
  /** Servers at which no attempt can succeed, of those tried since one failed for another reason. */
  readonly #hopeless = new Set<ServerAddress>()
  /** The errors with which calls reject: once the client is closed, and while it is closing. */
  #terminalError: ZooKeeperError | undefined
  #closingError: ClosedError | undefined

  /** `Batcher` is there if the options need it; `resume` is a session to continue. */
  constructor(
    options: SessionOptions,
    Batcher: typeof ReadBatcher | undefined,
    resume: SessionCredentials | undefined,
  ) {
    const { clock, random, errorPolicy } = options
    this.options = options
    this.#timeout = options.sessionTimeoutMs
    this.hostProvider = new HostProvider(options.servers, random)
    this.lease = new Lease(typeof errorPolicy === 'object' ? errorPolicy.lease.marginMs : undefined)
    this.states = new StateNotifier(this)
    if (options.auth.length > 0) this.#identities = new Identities(options.auth)
    this.dispatcher = new RequestDispatcher(options, this, Batcher)
    this.#heartbeat = new Heartbeat(clock, this)
    if (resume !== undefined) {
      this.#id = resume.id
      this.#password = toBinaryString(resume.password)
    }
  }

  get state(): ConnectionState {
    return this.states.state
  }

  /** Created for the first watch. */
  get watches(): WatchRegistry {
    return (this.#watches ??= new WatchRegistry())
  }

  get credentials(): SessionCredentials & { timeoutMs: number; generation: number } {
    return {
      id: this.#id,
      password: fromBinaryString(this.#password),
      timeoutMs: this.#timeout,
      generation: this.#generation,
    }
  }

  get generation(): number {
    return this.#generation
  }

  /** The server of the current connection. */
  get server(): string | undefined {
    return this.#connection && this.#connectedServer && addressText(this.#connectedServer.server)
  }

  /** The counts of `Client.stats`. */
  get stats(): ClientStats {
    const connection = this.#connection
    return {
      ...this.dispatcher.stats,
      sentBytes: this.#sentBytes + (connection?.sentBytes ?? 0),
      receivedBytes: this.#receivedBytes + (connection?.receivedBytes ?? 0),
      reconnects: Math.max(0, this.#connections - 1),
    }
  }

  get connection(): FramedConnection | undefined {
    return this.#connection
  }

  get terminalError(): ZooKeeperError | undefined {
    return this.#terminalError
  }

  /** The error with which a call rejects at once, when the client is closing or closed. */
  get callRejection(): ZooKeeperError | undefined {
    return this.#terminalError ?? this.#closingError
  }

  get sessionId(): bigint {
    return this.#id
  }

  /** Resolves when the client is closed: to the error, or to undefined after `close()`. */
  get closed(): Promise<Error | undefined> {
    this.#closed ??= new Promise((resolve) => {
      if (this.#terminalError === undefined) this.#settleClosed = resolve
      else resolve(closeReason(this.#terminalError))
    })
    return this.#closed
  }

  /** Returns the next order number. */
  nextOrder(): number {
    return ++this.#order
  }

  start(): void {
    this.#scheduleAttempt(0)
  }

  /** Authenticates now and on every later connection. */
  addAuth(identity: AuthInfo, settle: (error: ZooKeeperError | undefined) => void): void {
    const { callRejection } = this
    if (callRejection !== undefined) return settle(callRejection)
    this.#identities ??= new Identities([])
    this.#identities.add(identity, this.#connection, settle)
  }

  /** Takes a new server list. Returns true if this client moves to another server. */
  updateServers(servers: readonly ServerAddress[]): boolean {
    if (this.#terminalError !== undefined) return false
    const isUnchanged = isSameServerSet(servers, this.hostProvider.servers)
    const mustMove = this.hostProvider.updateServerList(
      servers,
      this.#connection === undefined ? undefined : this.#connectedServer,
    )
    if (this.#connection !== undefined) {
      if (mustMove) this.#startMove()
    } else if (!isUnchanged && !servers.some((server) => isSameServer(server, this.#attempt?.server))) {
      // The current attempt or delay belongs to the old list.
      this.#scheduleAttempt(0)
    }
    return mustMove
  }

  /** Closes the client, without regard to the session on the servers. */
  finish(error: ZooKeeperError, state: 'closed' | 'expired' | 'authFailed' = 'closed'): void {
    if (this.#terminalError !== undefined) return
    this.#terminalError = error
    this.#disconnect()
    this.lease.reset()
    this.#changeState(state, { cause: error })
    this.dispatcher.failAll((request) => terminalErrorFor(error, this.dispatcher.errorContext(request)))
    this.#identities?.failAll(error)
    this.#watches?.end(watchKinds, error)
    this.states.end()
    this.#settleClosed?.(closeReason(error))
  }

  get #isConnected(): boolean {
    return this.state === 'connected' || this.state === 'connectedReadOnly'
  }

  /** Ends the session on the servers and then the client; without a connection the session expires on the servers. */
  close(): Promise<void> {
    if (this.#terminalError === undefined && this.#closingError === undefined) {
      const error = new ClosedError('The client is closed', 'CLOSED')
      const finish = (): void => this.finish(error)
      // An observer may call this when the connection is gone and the state has not changed yet.
      if (!this.#isConnected || this.#connection === undefined) finish()
      else {
        this.#cancelDrain()
        this.dispatcher.resumeSending()
        requestSessionClose(this.dispatcher, this.options.clock, this.#timeout, finish)
        this.#closingError = error
      }
    }
    return this.closed.then(() => {})
  }

  // Callbacks of its parts

  onSessionMoved(): void {
    this.#connection?.fail(new Error('The session has moved to another server'))
  }

  onAuthFailed(error: AuthFailedError): void {
    this.finish(error, 'authFailed')
  }

  onStall(lateMs: number): void {
    callObserver(() => this.options.instrumentation?.stall?.(lateMs))
  }

  onStateChange(change: StateChange): void {
    callObserver(() => this.options.instrumentation?.state?.(change))
  }

  // Connecting

  #scheduleAttempt(extraMs: number): void {
    if (this.#terminalError !== undefined) return
    const { clock, random } = this.options
    this.#cancelWait()
    // An observer that gave another list of servers may have begun one.
    this.#attempt?.cancel()
    this.#attempt = undefined
    const candidate = this.hostProvider.next()
    const delay = extraMs + attemptDelay(candidate, random)
    // However many attempts have failed, a live session must not expire during a delay between two of them.
    const wait = this.#id === 0n ? delay : Math.min(delay, MAX_WAIT_SHARE * this.#timeout)
    if (wait === 0) return this.#startAttempt(candidate)
    this.#cancelWait = clock.after(wait, 'reconnect', () => this.#startAttempt(candidate))
  }

  #startAttempt({ server, round }: Candidate): void {
    this.#lastRound = round
    this.#attempt = new ConnectionAttempt(this.options, server, this, this.options.readOnly)
  }

  onAttemptFailed(server: ServerAddress, error: Error): void {
    this.#attempt = undefined
    const info = { server: addressText(server), error }
    this.lastFailure = info
    // A client without a session must be able to connect to an ensemble that was set up anew, which rejects clients
    // with a newer zxid.
    if (this.#id === 0n && this.#lastRound > 0) this.#lastZxid.reset()
    const { instrumentation, onAttemptFailed } = this.options
    this.#failedAttempts++
    callObserver(() => instrumentation?.attempt?.(info))
    callObserver(() => onAttemptFailed?.({ ...info, attempts: this.#failedAttempts }))
    const reason =
      this.#id === 0n && this.#connections === 0 ? permanentReason(error, this.options.explain) : undefined
    if (reason === undefined) this.#hopeless.clear()
    else if (this.#hopeless.add(server).size >= this.hostProvider.size) {
      const message = `connect: no attempt can succeed: ${info.server}: ${reason}`
      return this.finish(
        new ConnectFailedError(message, 'CONNECT_FAILED', { operation: 'connect', cause: error }),
      )
    }
    this.#scheduleAttempt(0)
  }

  /** Milliseconds that one attempt may take. */
  attemptTimeoutMs(): number {
    return attemptTimeout(this.#timeout, this.hostProvider.size)
  }

  /** Returns the connect request of the next attempt. */
  connectRequest(readOnly: boolean): ConnectRequest {
    return {
      protocolVersion: 0,
      lastZxidSeen: this.#lastZxid.value,
      timeOut: this.options.sessionTimeoutMs,
      sessionId: this.#id,
      passwd: this.#password === NO_PASSWORD ? NO_BYTES : fromBinaryString(this.#password),
      readOnly,
    }
  }

  /** Makes the connection of a successful handshake the one of the session. */
  onAttemptEstablished(server: ServerAddress, connection: FramedConnection, response: ConnectResponse): void {
    this.#attempt = this.lastFailure = undefined
    this.#failedAttempts = 0
    const isNewSession = this.#id === 0n
    if (response.timeOut <= 0) {
      connection.close()
      if (isNewSession) return this.#scheduleAttempt(0)
      return this.#expire(`reported by ${addressText(server)}`)
    }
    const isReplacement = this.#connection !== undefined
    this.#disconnect()
    if (isReplacement) this.dispatcher.detach(new Error('The client has moved to a read-write server'))
    if (this.#terminalError !== undefined) return connection.close()
    const readOnly = response.readOnly === true
    if (isNewSession && !this.#isGrantPending) this.#generation++
    if (isNewSession) this.#isGrantPending = false
    // A session of a read-only server is unknown to the ensemble.
    if (!readOnly || !isNewSession) {
      this.#id = response.sessionId
      this.#password = response.passwd ? toBinaryString(response.passwd) : NO_PASSWORD
    }
    this.#timeout = response.timeOut
    this.#connection = connection
    this.#connections++
    this.#connectedAt = this.options.clock.monotonic()
    this.#connectedServer = { server, host: connection.remoteHost }
    this.hostProvider.onConnected(this.#connectedServer)
    connection.setHandler(this)
    this.lease.onConnected(this.#timeout, connection.lastSentAt)
    this.#heartbeat.start(connection, this.#timeout)
    this.#identities?.sendAll(connection)
    const established = { connection, server, readOnly, isNewSession }
    const { sasl } = this.options
    if (sasl === undefined) this.#activate(established)
    else this.#logIn(sasl, established)
  }

  /** Runs the SASL login; no other request is sent until it is complete. */
  #logIn(sasl: NonNullable<SessionOptions['sasl']>, established: EstablishedConnection): void {
    const { connection, server } = established
    this.#saslLogin = new SaslLogin(connection, this.options.clock, this.attemptTimeoutMs())
    this.#saslLogin
      .run(() => sasl(server))
      .then(() => this.#connection === connection && this.#activate(established))
      .catch((error: unknown) => {
        // The connection may be gone already: a server closes it right after a rejection.
        if (error instanceof AuthFailedError) this.finish(error, 'authFailed')
        else connection.fail(errorOf(error))
      })
  }

  /**
   * Restores the watches before any request is sent, so that no reply is newer than an event that its watch has
   * missed.
   */
  #activate({ connection, server, readOnly, isNewSession }: EstablishedConnection): void {
    this.#restoreWatches(connection, isNewSession ? 'newSession' : 'reconnected')
    this.#changeState(readOnly ? 'connectedReadOnly' : 'connected', { server: addressText(server) })
    // An observer may have closed the client, here and below.
    if (this.#connection !== connection) return
    this.dispatcher.attach(connection, readOnly, server)
    if (readOnly && this.#connection === connection) {
      this.#search ??= new ReadWriteSearch(this.options, this.hostProvider, this)
      this.#search.start()
    }
  }

  #restoreWatches(connection: FramedConnection, reason: 'reconnected' | 'newSession'): void {
    if (this.#watchRestorer === undefined && !this.#watches?.size) return this.#watches?.clearLeftovers()
    this.#watchRestorer ??= new WatchRestorer(this.watches, () => this.nextOrder())
    this.#watchRestorer.begin(connection, this.#lastZxid.value, reason)
  }

  // Disconnecting

  /** Handles an unexpected connection loss. */
  onConnectionLost(connection: FramedConnection, reason: Error | undefined): void {
    if (this.#connection !== connection) return
    const server = addressText(this.#connectedServer!.server)
    const cause = reason ?? new Error(`${server} closed the connection`)
    // The server closes the connection of a session that has ended; its reply may not have been processed yet.
    if (this.#closingError !== undefined) return this.finish(this.#closingError)
    const { clock, random } = this.options
    const { lastReceivedAt } = connection
    const wasUseful =
      this.dispatcher.hasReceivedReply || clock.monotonic() - this.#connectedAt >= this.#timeout / 3
    if (wasUseful) this.hostProvider.resetAttempts()
    const extraDelay = this.#isMoving ? 0 : disconnectDelay(this.#timeout, random)
    this.#disconnect()
    this.dispatcher.detach(cause)
    if (this.#isConnected) this.#changeState('suspended', { cause, server })
    // An observer or a retry function may have closed the client.
    if (this.#terminalError !== undefined) return
    const timeToExpiry = Math.max(0, lastReceivedAt + (4 / 3) * this.#timeout - clock.monotonic())
    // A session that no ensemble has granted cannot expire.
    if (this.#id !== 0n) {
      this.#cancelExpiry = clock.after(timeToExpiry, 'local expiry', () =>
        this.#expire(`no connection for ${Math.round((4 / 3) * this.#timeout)} ms`),
      )
    }
    this.#scheduleAttempt(extraDelay)
  }

  /** Waits for the replies to requests in flight, then moves to another server. */
  #startMove(): void {
    const connection = this.#connection!
    this.#cancelDrain()
    this.dispatcher.pauseSending()
    const move = (): void => {
      if (this.#connection !== connection) return
      this.#isMoving = true
      connection.fail(new Error('The client moves to another server of the updated list'))
    }
    this.#cancelDrain = this.options.clock.after(this.#timeout / 3, 'drain before a move', move)
    this.dispatcher.whenIdle(move)
  }

  #disconnect(): void {
    this.#cancelWait()
    this.#cancelExpiry()
    this.#cancelDrain()
    this.#isMoving = false
    this.#heartbeat.stop()
    this.#search?.stop()
    this.#attempt?.cancel()
    this.#attempt = undefined
    this.#saslLogin?.stop()
    this.#saslLogin = undefined
    const connection = this.#connection
    this.#connection = undefined
    if (connection === undefined) return
    this.#sentBytes += connection.sentBytes
    this.#receivedBytes += connection.receivedBytes
    connection.close()
    this.dispatcher.pauseSending()
  }

  #changeState(state: ConnectionState, details?: { readonly server?: string; readonly cause?: Error }): void {
    this.states.change({
      state,
      previous: this.state,
      ...details,
      sessionGeneration: this.#generation,
      order: this.nextOrder(),
    })
  }

  #expire(reason: string): void {
    const error = new SessionExpiredError(`The session has expired: ${reason}`, this.#id)
    if (this.options.sessionExpiry === 'close') return this.finish(error, 'expired')
    this.#disconnect()
    this.lease.reset()
    this.#changeState('expired', { cause: error })
    this.dispatcher.failAll(
      (request) =>
        new SessionExpiredError(error.message, error.sessionId, this.dispatcher.errorContext(request)),
    )
    this.#watches?.end(['data', 'exists', 'children'], error)
    if (this.#terminalError !== undefined) return
    this.#id = 0n
    this.#password = NO_PASSWORD
    this.#timeout = this.options.sessionTimeoutMs
    this.#generation++
    this.#isGrantPending = true
    this.#changeState('connecting')
    this.#scheduleAttempt(0)
  }

  // Receiving

  onFrame(bytes: Uint8Array, start: number, end: number): void {
    const reader = sharedReader.reset(bytes, start, end)
    const xid = reader.int()
    const high = reader.int()
    const low = reader.int()
    const code = reader.int()
    if (xid === Xid.ping) return this.#onPong()
    if (xid === Xid.notification) return this.#onNotification(reader, high, low)
    this.#lastZxid.raise(high, low)
    if (xid === Xid.auth) return this.#onAuthReply(code)
    if (xid === Xid.setWatches) return this.#onWatchesReply(code)
    if (this.#saslLogin?.onReply(reader, code)) return
    this.dispatcher.onReply(reader, xid, code, this.nextOrder())
  }

  #onPong(): void {
    const sentAt = this.#heartbeat.onPong()
    if (sentAt !== undefined && this.state === 'connected') this.lease.onReply(sentAt, 'contact')
  }

  #onNotification(reader: Reader, high: number, low: number): void {
    const event = readEvent(reader, high, low, () => this.nextOrder())
    // Closing deletes the ephemeral znodes of the session; their watchers learn that the client is closed, not that another
    // client deleted them. Events before the replies to earlier reads are delivered: those reads may show the change.
    if (event === undefined || this.dispatcher.nextToReply === closeSession) return
    const { type, path } = event
    const watchers = this.#watches?.dispatch(event) ?? 0
    const { instrumentation, redactPath } = this.options
    callObserver(() => instrumentation?.event?.({ type, path: redactPath?.(path) ?? path, watchers }))
  }

  #onWatchesReply(code: number): void {
    const error = this.#watchRestorer?.onReply(code)
    if (error instanceof AuthFailedError) this.onAuthFailed(error)
    else if (error !== undefined) throw new Error('The server did not restore the watches', { cause: error })
  }

  #onAuthReply(code: number): void {
    const rejection = this.#identities?.onReply(code)
    if (rejection !== undefined) this.finish(rejection, 'authFailed')
  }
}
