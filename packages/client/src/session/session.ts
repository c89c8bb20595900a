import { Reader, Xid, type ConnectRequest, type ConnectResponse } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import {
  AuthFailedError,
  ClosedError,
  terminalErrorFor,
  closeReason,
  SessionExpiredError,
} from '../errors.ts'
import type { ZooKeeperError } from '../errors.ts'
import { toBinaryString, fromBinaryString } from '../bytes.ts'
import { noop } from '../noop.ts'
import { attemptDelay, attemptTimeout, disconnectDelay } from '../servers/connect-delay.ts'
import { addressKey, isSameServer, isSameServerSet } from '../servers/connect-string.ts'
import { HostProvider, type ConnectedServer, type Candidate } from '../servers/host-provider.ts'
import type { AuthInfo, ConnectionState, ServerAddress, SessionCredentials, StateChange } from '../types.ts'
import { readEvent, watchKinds, WatchRegistry } from '../watches/watch-registry.ts'
import { WatchRestorer } from '../watches/watch-restorer.ts'
import { ConnectionAttempt, type AttemptCallbacks } from './connection-attempt.ts'
import { requestSessionClose } from './close-session.ts'
import { Heartbeat, type HeartbeatCallbacks } from './heartbeat.ts'
import { Identities } from './identities.ts'
import { Lease } from './lease.ts'
import { SaslLogin } from './sasl-login.ts'
import { callObserver } from './observe.ts'
import { ReadWriteSearch } from './read-write-search.ts'
import type { SessionOptions } from './options.ts'
import { RequestDispatcher, type RequestOwner } from './request-dispatcher.ts'
import { StateNotifier, type StateCallbacks } from './state-notifier.ts'
import type { FramedConnection, FramedConnectionEvents } from './framed-connection.ts'

/** The longest wait between two attempts of a client that has a session, as a share of its timeout. */
const MAX_WAIT_SHARE = 1 / 3
/** Frames are read to their end within one call, so all sessions share a cursor. */
const sharedReader = new Reader()
const NO_PASSWORD = '\0'.repeat(16)
const NO_BYTES = fromBinaryString(NO_PASSWORD)

/**
 * One client's side of a session: connects, keeps it alive, moves it between servers, renews it. A machine that takes
 * inputs (bytes, timers, calls) and never waits for anything itself.
 */
export class Session
  implements AttemptCallbacks, HeartbeatCallbacks, RequestOwner, StateCallbacks, FramedConnectionEvents
{
  readonly options: SessionOptions
  readonly hostProvider: HostProvider
  #watches: WatchRegistry | undefined
  readonly dispatcher: RequestDispatcher
  readonly lease: Lease
  readonly states: StateNotifier
  /** Made when somebody asks for it. */
  #closed: Promise<Error | undefined> | undefined
  #settleClosed: ((reason: Error | undefined) => void) | undefined
  readonly #heartbeat: Heartbeat
  /** Only for clients that take a read-only server. */
  #search: ReadWriteSearch | undefined

  #order = 0
  #generation = 1
  /** Whether the session of this epoch is still to be granted. */
  #isGrantPending = true
  #id = 0n
  /** One character for each byte: an array would take five times the room. */
  #password = NO_PASSWORD
  #timeout: number
  /** The newest transaction that a server has told of, in two halves so that replies cost no bigint. */
  #zxidHigh = 0
  #zxidLow = 0
  #connection: FramedConnection | undefined
  #attempt: ConnectionAttempt | undefined
  /** Of the attempt that was made last. */
  #lastRound = 0
  #connectedServer: ConnectedServer | undefined
  /** When the connection that stands, or stood last, was made. */
  #connectedAt = 0
  #cancelWait: Cancel = noop
  #cancelExpiry: Cancel = noop
  #cancelDrain: Cancel = noop
  /** The client leaves its server of its own will. */
  #isMoving = false
  /** Only for clients that have some. */
  #identities: Identities | undefined
  /** Only for clients that had watches when they connected. */
  #watchRestorer: WatchRestorer | undefined
  #saslLogin: SaslLogin | undefined
  /** The last attempt that failed, until one succeeds. */
  lastFailure: { readonly server: string; readonly error: Error } | undefined
  /** Why everything fails from now on, and why nothing new is taken. */
  #terminalError: ZooKeeperError | undefined
  #closingError: ClosedError | undefined

  /** `resume` is a session to go on with. */
  constructor(options: SessionOptions, resume?: SessionCredentials) {
    const { clock, random, errorPolicy } = options
    this.options = options
    this.#timeout = options.sessionTimeout
    this.hostProvider = new HostProvider(options.servers, random)
    this.lease = new Lease(typeof errorPolicy === 'object' ? errorPolicy.lease.margin : undefined)
    this.states = new StateNotifier(this)
    if (options.auth.length > 0) this.#identities = new Identities(options.auth)
    this.dispatcher = new RequestDispatcher(options, this)
    this.#heartbeat = new Heartbeat(clock, this)
    if (resume !== undefined) {
      this.#id = resume.id
      this.#password = toBinaryString(resume.password)
    }
  }

  get state(): ConnectionState {
    return this.states.state
  }

  /** Made for the first watch. */
  get watches(): WatchRegistry {
    return (this.#watches ??= new WatchRegistry())
  }

  get credentials(): SessionCredentials & { timeout: number; epoch: number } {
    return {
      id: this.#id,
      password: fromBinaryString(this.#password),
      timeout: this.#timeout,
      epoch: this.#generation,
    }
  }

  get generation(): number {
    return this.#generation
  }

  get connection(): FramedConnection | undefined {
    return this.#connection
  }

  get terminalError(): ZooKeeperError | undefined {
    return this.#terminalError
  }

  /** Why a call fails now, when the client is finished or about to be. */
  get callRejection(): ZooKeeperError | undefined {
    return this.#terminalError ?? this.#closingError
  }

  get sessionId(): bigint {
    return this.#id
  }

  /** Resolves when the client is finished, to the error that is why, or to nothing when it was closed. */
  get closed(): Promise<Error | undefined> {
    this.#closed ??= new Promise((resolve) => {
      if (this.#terminalError === undefined) this.#settleClosed = resolve
      else resolve(closeReason(this.#terminalError))
    })
    return this.#closed
  }

  get lastZxid(): bigint {
    if (this.#zxidHigh === 0 && this.#zxidLow === 0) return 0n
    return (BigInt(this.#zxidHigh) << 32n) | BigInt(this.#zxidLow >>> 0)
  }

  /** A number for the next thing that is told. */
  nextOrder(): number {
    return ++this.#order
  }

  start(): void {
    this.#scheduleAttempt(0)
  }

  /** Proves an identity now and on every later connection. */
  addAuth(identity: AuthInfo, settle: (error: ZooKeeperError | undefined) => void): void {
    const { callRejection: refusal } = this
    if (refusal !== undefined) return settle(refusal)
    this.#identities ??= new Identities([])
    this.#identities.add(identity, this.#connection, settle)
  }

  /** Takes a new list of servers. True when this client leaves its server for another one. */
  updateServers(servers: readonly ServerAddress[]): boolean {
    if (this.#terminalError !== undefined) return false
    const unchanged = isSameServerSet(servers, this.hostProvider.servers)
    const moves = this.hostProvider.updateServerList(
      servers,
      this.#connection === undefined ? undefined : this.#connectedServer,
    )
    if (this.#connection !== undefined) {
      if (moves) this.#startMove()
    } else if (!unchanged && !servers.some((server) => isSameServer(server, this.#attempt?.server))) {
      // Whatever was being tried or waited for belongs to the old list.
      this.#attempt?.cancel()
      this.#scheduleAttempt(0)
    }
    return moves
  }

  /** Ends the client, whatever becomes of the session on the servers. */
  finish(error: ZooKeeperError, state: 'closed' | 'expired' | 'authFailed' = 'closed'): void {
    if (this.#terminalError !== undefined) return
    this.#terminalError = error
    this.#disconnect()
    this.lease.reset()
    this.#changeToEndState(state, error)
    this.dispatcher.failAll((slot) => terminalErrorFor(error, this.dispatcher.errorContext(slot)))
    this.#identities?.failAll(error)
    this.#watches?.end(watchKinds, error)
    this.states.end()
    this.#settleClosed?.(closeReason(error))
  }

  get #isConnected(): boolean {
    return this.state === 'connected' || this.state === 'connectedReadOnly'
  }

  /** Ends the session on the servers and then the client; without a connection the session runs out by itself. */
  close(): Promise<void> {
    if (this.#terminalError === undefined && this.#closingError === undefined) {
      const error = new ClosedError('The client is closed', 'CLOSED')
      const finish = (): void => this.finish(error)
      if (!this.#isConnected) finish()
      else {
        this.#cancelDrain()
        this.dispatcher.resumeSending()
        requestSessionClose(this.dispatcher, this.options.clock, this.#timeout, finish)
        this.#closingError = error
      }
    }
    return this.closed.then(() => {})
  }

  // What its parts tell

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
    const candidate = this.hostProvider.next()
    const delay = extraMs + attemptDelay(candidate, random)
    // However many attempts have failed, a session that lives is not left to expire between two of them.
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
    const info = { server: addressKey(server), error }
    this.lastFailure = info
    // An ensemble that was set up anew must be able to take a client whose session is gone; it refuses who has seen more.
    if (this.#id === 0n && this.#lastRound > 0) this.#zxidHigh = this.#zxidLow = 0
    callObserver(() => this.options.instrumentation?.attempt?.(info))
    this.#scheduleAttempt(0)
  }

  /** Milliseconds that one attempt may take now. */
  attemptTimeoutMs(): number {
    return attemptTimeout(this.#timeout, this.hostProvider.size)
  }

  /** How the client introduces itself to a server. */
  connectRequest(readOnly: boolean): ConnectRequest {
    return {
      protocolVersion: 0,
      lastZxidSeen: this.lastZxid,
      timeOut: this.options.sessionTimeout,
      sessionId: this.#id,
      passwd: this.#password === NO_PASSWORD ? NO_BYTES : fromBinaryString(this.#password),
      readOnly,
    }
  }

  /** A server has answered the handshake: its connection becomes the one of the session. */
  onAttemptEstablished(server: ServerAddress, wire: FramedConnection, response: ConnectResponse): void {
    this.#attempt = this.lastFailure = undefined
    const fresh = this.#id === 0n
    if (response.timeOut <= 0) {
      wire.close()
      if (fresh) return this.#scheduleAttempt(0)
      return this.#expire(`${addressKey(server)} says that the session has expired`)
    }
    const replaced = this.#connection !== undefined
    this.#disconnect()
    if (replaced) this.dispatcher.detach(new Error('The client has moved to a server that takes writes'))
    const readOnly = response.readOnly === true
    if (fresh && !this.#isGrantPending) this.#generation++
    if (fresh) this.#isGrantPending = false
    // What a read-only server hands out is not known anywhere else.
    if (!readOnly || !fresh) {
      this.#id = response.sessionId
      this.#password = response.passwd ? toBinaryString(response.passwd) : NO_PASSWORD
    }
    this.#timeout = response.timeOut
    this.#connection = wire
    this.#connectedAt = this.options.clock.monotonic()
    this.#connectedServer = { server, host: wire.remoteHost }
    this.hostProvider.onConnected(this.#connectedServer)
    wire.listen(this)
    this.lease.onConnected(this.#timeout, wire.lastSentAt)
    this.#heartbeat.start(wire, this.#timeout)
    this.#identities?.sendAll(wire)
    const { sasl } = this.options
    if (sasl === undefined) this.#activate(wire, server, readOnly, fresh)
    else this.#logIn(sasl, wire, server, this.#activation(wire, server, readOnly, fresh))
  }

  /** Apart from who calls it, so that clients without a login keep no closure. */
  #activation(wire: FramedConnection, server: ServerAddress, readOnly: boolean, fresh: boolean): () => void {
    return () => this.#activate(wire, server, readOnly, fresh)
  }

  /** Nothing but the login is sent until it is done. */
  #logIn(
    sasl: NonNullable<SessionOptions['sasl']>,
    wire: FramedConnection,
    server: ServerAddress,
    prime: () => void,
  ): void {
    this.#saslLogin = new SaslLogin(wire, this.options.clock, this.attemptTimeoutMs())
    this.#saslLogin
      .run(() => sasl(server))
      .then(() => this.#connection === wire && prime())
      .catch((error: unknown) => {
        // The connection may be gone already: a server closes it right behind its refusal.
        if (error instanceof AuthFailedError) this.finish(error, 'authFailed')
        else wire.fail(error instanceof Error ? error : new Error(String(error)))
      })
  }

  /** Watches come before requests, so that no answer is older than what its watches would have told. */
  #activate(wire: FramedConnection, server: ServerAddress, readOnly: boolean, fresh: boolean): void {
    this.#restoreWatches(wire, fresh ? 'newSession' : 'reconnected')
    this.states.change({
      state: readOnly ? 'connectedReadOnly' : 'connected',
      previous: this.state,
      server: addressKey(server),
      sessionGeneration: this.#generation,
      order: this.nextOrder(),
    })
    this.dispatcher.attach(wire, readOnly, server)
    if (readOnly) {
      this.#search ??= new ReadWriteSearch(this.options, this.hostProvider, this)
      this.#search.start()
    }
  }

  #restoreWatches(wire: FramedConnection, reason: 'reconnected' | 'newSession'): void {
    if (this.#watchRestorer === undefined && !this.#watches?.size) return this.#watches?.clearLeftovers()
    this.#watchRestorer ??= new WatchRestorer(this.watches, () => this.nextOrder())
    this.#watchRestorer.begin(wire, this.lastZxid, reason)
  }

  // Disconnecting

  /** The connection is gone without anybody's wish. */
  onConnectionLost(wire: FramedConnection, reason: Error | undefined): void {
    if (this.#connection !== wire) return
    const server = addressKey(this.#connectedServer!.server)
    const cause = reason ?? new Error(`${server} closed the connection`)
    // The server closes the connection of a session that has ended; its answer may still be on its way to the caller.
    if (this.#closingError !== undefined) return this.finish(this.#closingError)
    const { clock, random } = this.options
    const { lastReceivedAt: lastHeard } = wire
    const lived =
      this.dispatcher.hasReceivedReply || clock.monotonic() - this.#connectedAt >= this.#timeout / 3
    if (lived) this.hostProvider.resetAttempts()
    const spread = this.#isMoving ? 0 : disconnectDelay(this.#timeout, random)
    this.#disconnect()
    this.dispatcher.detach(cause)
    if (this.#isConnected)
      this.states.change({
        state: 'suspended',
        previous: this.state,
        cause,
        server,
        sessionGeneration: this.#generation,
        order: this.nextOrder(),
      })
    const left = Math.max(0, lastHeard + (4 / 3) * this.#timeout - clock.monotonic())
    // A session that no ensemble has granted cannot expire.
    if (this.#id !== 0n) {
      this.#cancelExpiry = clock.after(left, 'local expiry', () =>
        this.#expire(`no server was reached for ${Math.round((4 / 3) * this.#timeout)} ms`),
      )
    }
    this.#scheduleAttempt(spread)
  }

  /** Lets what is in flight be answered, then moves to another server. */
  #startMove(): void {
    const wire = this.#connection!
    this.#cancelDrain()
    this.dispatcher.pauseSending()
    const move = (): void => {
      if (this.#connection !== wire) return
      this.#isMoving = true
      wire.fail(new Error('The client moves to another server of the new list'))
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
    const wire = this.#connection
    this.#connection = undefined
    if (wire === undefined) return
    wire.close()
    this.dispatcher.pauseSending()
  }

  #changeToEndState(state: ConnectionState, cause: Error): void {
    const { state: previous } = this
    this.states.change({
      state,
      previous,
      cause,
      sessionGeneration: this.#generation,
      order: this.nextOrder(),
    })
  }

  #expire(reason: string): void {
    const error = new SessionExpiredError(`The session has expired: ${reason}`, this.#id)
    if (this.options.sessionExpiry === 'close') return this.finish(error, 'expired')
    this.#disconnect()
    this.lease.reset()
    this.#changeToEndState('expired', error)
    this.dispatcher.failAll(
      (slot) => new SessionExpiredError(error.message, error.sessionId, this.dispatcher.errorContext(slot)),
    )
    this.#watches?.end(['data', 'exists', 'children'], error)
    this.#id = 0n
    this.#password = NO_PASSWORD
    this.#timeout = this.options.sessionTimeout
    this.#generation++
    this.#isGrantPending = true
    const order = this.nextOrder()
    this.states.change({
      state: 'connecting',
      previous: 'expired',
      sessionGeneration: this.#generation,
      order,
    })
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
    if (high > 0 || (high === 0 && low !== 0)) this.#updateLastZxid(high, low)
    if (xid === Xid.auth) return this.#onAuthReply(code)
    if (xid === Xid.setWatches) {
      if (this.#watchRestorer?.onReply(code)) throw new Error('The server did not set the watches again')
      return
    }
    if (this.#saslLogin?.onReply(reader, code)) return
    this.dispatcher.onReply(reader, xid, code, this.nextOrder())
  }

  #updateLastZxid(high: number, low: number): void {
    if (high < this.#zxidHigh || (high === this.#zxidHigh && low >>> 0 <= this.#zxidLow >>> 0)) return
    this.#zxidHigh = high
    this.#zxidLow = low
  }

  #onPong(): void {
    const sentAt = this.#heartbeat.onPong()
    if (sentAt !== undefined && this.state === 'connected') this.lease.onReply(sentAt, 'contact')
  }

  #onNotification(reader: Reader, high: number, low: number): void {
    const event = readEvent(reader, high, low, () => this.nextOrder())
    if (event === undefined) return
    const { type, path } = event
    const watchers = this.#watches?.dispatch(event) ?? 0
    const { instrumentation, redactPath } = this.options
    callObserver(() => instrumentation?.event?.({ type, path: redactPath?.(path) ?? path, watchers }))
  }

  #onAuthReply(code: number): void {
    const refused = this.#identities?.onReply(code)
    if (refused !== undefined) this.finish(refused, 'authFailed')
  }
}
