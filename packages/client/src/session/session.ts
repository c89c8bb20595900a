import { Reader, Xid, type ConnectRequest, type ConnectResponse } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import { AuthFailedError, ClosedError, endedBy, reasonOf, SessionExpiredError } from '../errors.ts'
import type { ZooKeeperError } from '../errors.ts'
import { packed, unpacked } from '../bytes.ts'
import { nothing } from '../nothing.ts'
import { attemptDelay, attemptLimit, dropDelay } from '../servers/backoff.ts'
import { addressKey, isSame, sameServers } from '../servers/connect-string.ts'
import { HostList, type Attachment, type Candidate } from '../servers/host-list.ts'
import type { AuthInfo, ConnectionState, ServerAddress, SessionCredentials, StateChange } from '../types.ts'
import { readEvent, watchKinds, WatchRegistry } from '../watches/registry.ts'
import { Restoration } from '../watches/restore.ts'
import { Attempt, type AttemptOwner } from './attempt.ts'
import { endSession } from './close-session.ts'
import { Heartbeat, type HeartbeatOwner } from './heartbeat.ts'
import { Identities } from './identities.ts'
import { Lease } from './lease.ts'
import { Login } from './login.ts'
import { observe } from './observed.ts'
import { ReadWriteSearch } from './read-write-search.ts'
import type { SessionOptions } from './options.ts'
import { Requests, type RequestsHost } from './requests.ts'
import { States, type StatesOwner } from './states.ts'
import type { Wire, WireEvents } from './wire.ts'

/** The longest wait between two attempts of a client that has a session, as a share of its timeout. */
const PATIENCE = 1 / 3
/** Frames are read to their end within one call, so all sessions share a cursor. */
const sharedReader = new Reader()
const NO_PASSWORD = '\0'.repeat(16)
const NO_BYTES = unpacked(NO_PASSWORD)

/**
 * One client's side of a session: connects, keeps it alive, moves it between servers, renews it. A machine that takes
 * inputs (bytes, timers, calls) and never waits for anything itself.
 */
export class Session implements AttemptOwner, HeartbeatOwner, RequestsHost, StatesOwner, WireEvents {
  readonly options: SessionOptions
  readonly hosts: HostList
  #watches: WatchRegistry | undefined
  readonly requests: Requests
  readonly lease: Lease
  readonly states: States
  /** Made when somebody asks for it. */
  #closed: Promise<Error | undefined> | undefined
  #settleClosed: ((reason: Error | undefined) => void) | undefined
  readonly #heartbeat: Heartbeat
  /** Only for clients that take a read-only server. */
  #search: ReadWriteSearch | undefined

  #order = 0
  #epoch = 1
  /** Whether the session of this epoch is still to be granted. */
  #awaited = true
  #id = 0n
  /** One character for each byte: an array would take five times the room. */
  #password = NO_PASSWORD
  #timeout: number
  /** The newest transaction that a server has told of, in two halves so that replies cost no bigint. */
  #zxidHigh = 0
  #zxidLow = 0
  #wire: Wire | undefined
  #attempt: Attempt | undefined
  /** Of the attempt that was made last. */
  #round = 0
  #attachment: Attachment | undefined
  /** When the connection that stands, or stood last, was made. */
  #since = 0
  #cancelWait: Cancel = nothing
  #cancelExpiry: Cancel = nothing
  #cancelDrain: Cancel = nothing
  /** The client leaves its server of its own will. */
  #leaving = false
  /** Only for clients that have some. */
  #identities: Identities | undefined
  /** Only for clients that had watches when they connected. */
  #restoration: Restoration | undefined
  #login: Login | undefined
  /** The last attempt that failed, until one succeeds. */
  lastFailure: { readonly server: string; readonly error: Error } | undefined
  /** Why everything fails from now on, and why nothing new is taken. */
  #finished: ZooKeeperError | undefined
  #closing: ClosedError | undefined

  /** `resume` is a session to go on with. */
  constructor(options: SessionOptions, resume?: SessionCredentials) {
    const { clock, random, errorPolicy } = options
    this.options = options
    this.#timeout = options.sessionTimeout
    this.hosts = new HostList(options.servers, random)
    this.lease = new Lease(typeof errorPolicy === 'object' ? errorPolicy.lease.margin : undefined)
    this.states = new States(this)
    if (options.auth.length > 0) this.#identities = new Identities(options.auth)
    this.requests = new Requests(options, this)
    this.#heartbeat = new Heartbeat(clock, this)
    if (resume !== undefined) {
      this.#id = resume.id
      this.#password = packed(resume.password)
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
    return { id: this.#id, password: unpacked(this.#password), timeout: this.#timeout, epoch: this.#epoch }
  }

  get epoch(): number {
    return this.#epoch
  }

  get wire(): Wire | undefined {
    return this.#wire
  }

  get finished(): ZooKeeperError | undefined {
    return this.#finished
  }

  /** Why a call fails now, when the client is finished or about to be. */
  get refusal(): ZooKeeperError | undefined {
    return this.#finished ?? this.#closing
  }

  get sessionId(): bigint {
    return this.#id
  }

  /** Resolves when the client is finished, to the error that is why, or to nothing when it was closed. */
  get closed(): Promise<Error | undefined> {
    this.#closed ??= new Promise((resolve) => {
      if (this.#finished === undefined) this.#settleClosed = resolve
      else resolve(reasonOf(this.#finished))
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
    this.#seek(0)
  }

  /** Proves an identity now and on every later connection. */
  addAuth(identity: AuthInfo, settle: (error: ZooKeeperError | undefined) => void): void {
    const { refusal } = this
    if (refusal !== undefined) return settle(refusal)
    this.#identities ??= new Identities([])
    this.#identities.add(identity, this.#wire, settle)
  }

  /** Takes a new list of servers. True when this client leaves its server for another one. */
  updateServers(servers: readonly ServerAddress[]): boolean {
    if (this.#finished !== undefined) return false
    const unchanged = sameServers(servers, this.hosts.servers)
    const moves = this.hosts.update(servers, this.#wire === undefined ? undefined : this.#attachment)
    if (this.#wire !== undefined) {
      if (moves) this.#leave()
    } else if (!unchanged && !servers.some((server) => isSame(server, this.#attempt?.server))) {
      // Whatever was being tried or waited for belongs to the old list.
      this.#attempt?.cancel()
      this.#seek(0)
    }
    return moves
  }

  /** Ends the client, whatever becomes of the session on the servers. */
  finish(error: ZooKeeperError, state: 'closed' | 'expired' | 'authFailed' = 'closed'): void {
    if (this.#finished !== undefined) return
    this.#finished = error
    this.#disconnect()
    this.lease.end()
    this.#stop(state, error)
    this.requests.failAll((slot) => endedBy(error, this.requests.facts(slot)))
    this.#identities?.failAll(error)
    this.#watches?.end(watchKinds, error)
    this.states.end()
    this.#settleClosed?.(reasonOf(error))
  }

  get #ready(): boolean {
    return this.state === 'connected' || this.state === 'connectedReadOnly'
  }

  /** Ends the session on the servers and then the client; without a connection the session runs out by itself. */
  close(): Promise<void> {
    if (this.#finished === undefined && this.#closing === undefined) {
      const error = new ClosedError('The client is closed', 'CLOSED')
      const finish = (): void => this.finish(error)
      if (!this.#ready) finish()
      else {
        this.#cancelDrain()
        this.requests.release()
        endSession(this.requests, this.options.clock, this.#timeout, finish)
        this.#closing = error
      }
    }
    return this.closed.then(() => {})
  }

  // What its parts tell

  moved(): void {
    this.#wire?.fail(new Error('The session has moved to another server'))
  }

  unwelcome(error: AuthFailedError): void {
    this.finish(error, 'authFailed')
  }

  stalled(lateMs: number): void {
    observe(() => this.options.instrumentation?.stall?.(lateMs))
  }

  changed(change: StateChange): void {
    observe(() => this.options.instrumentation?.state?.(change))
  }

  // Connecting

  #seek(extraMs: number): void {
    if (this.#finished !== undefined) return
    const { clock, random } = this.options
    this.#cancelWait()
    const candidate = this.hosts.next()
    const delay = extraMs + attemptDelay(candidate, random)
    // However many attempts have failed, a session that lives is not left to expire between two of them.
    const wait = this.#id === 0n ? delay : Math.min(delay, PATIENCE * this.#timeout)
    if (wait === 0) return this.#try(candidate)
    this.#cancelWait = clock.after(wait, 'reconnect', () => this.#try(candidate))
  }

  #try({ server, round }: Candidate): void {
    this.#round = round
    this.#attempt = new Attempt(this.options, server, this, this.options.readOnly)
  }

  failed(server: ServerAddress, error: Error): void {
    this.#attempt = undefined
    const info = { server: addressKey(server), error }
    this.lastFailure = info
    // An ensemble that was set up anew must be able to take a client whose session is gone; it refuses who has seen more.
    if (this.#id === 0n && this.#round > 0) this.#zxidHigh = this.#zxidLow = 0
    observe(() => this.options.instrumentation?.attempt?.(info))
    this.#seek(0)
  }

  /** Milliseconds that one attempt may take now. */
  limitMs(): number {
    return attemptLimit(this.#timeout, this.hosts.size)
  }

  /** How the client introduces itself to a server. */
  hello(readOnly: boolean): ConnectRequest {
    return {
      protocolVersion: 0,
      lastZxidSeen: this.lastZxid,
      timeOut: this.options.sessionTimeout,
      sessionId: this.#id,
      passwd: this.#password === NO_PASSWORD ? NO_BYTES : unpacked(this.#password),
      readOnly,
    }
  }

  /** A server has answered the handshake: its connection becomes the one of the session. */
  established(server: ServerAddress, wire: Wire, response: ConnectResponse): void {
    this.#attempt = this.lastFailure = undefined
    const fresh = this.#id === 0n
    if (response.timeOut <= 0) {
      wire.close()
      if (fresh) return this.#seek(0)
      return this.#expire(`${addressKey(server)} says that the session has expired`)
    }
    const replaced = this.#wire !== undefined
    this.#disconnect()
    if (replaced) this.requests.detach(new Error('The client has moved to a server that takes writes'))
    const readOnly = response.readOnly === true
    if (fresh && !this.#awaited) this.#epoch++
    if (fresh) this.#awaited = false
    // What a read-only server hands out is not known anywhere else.
    if (!readOnly || !fresh) {
      this.#id = response.sessionId
      this.#password = response.passwd ? packed(response.passwd) : NO_PASSWORD
    }
    this.#timeout = response.timeOut
    this.#wire = wire
    this.#since = this.options.clock.monotonic()
    this.#attachment = { server, host: wire.remoteHost }
    this.hosts.connected(this.#attachment)
    wire.listen(this)
    this.lease.begin(this.#timeout, wire.lastSent)
    this.#heartbeat.start(wire, this.#timeout)
    this.#identities?.proveAll(wire)
    const { sasl } = this.options
    if (sasl === undefined) this.#prime(wire, server, readOnly, fresh)
    else this.#logIn(sasl, wire, server, this.#primer(wire, server, readOnly, fresh))
  }

  /** Apart from who calls it, so that clients without a login keep no closure. */
  #primer(wire: Wire, server: ServerAddress, readOnly: boolean, fresh: boolean): () => void {
    return () => this.#prime(wire, server, readOnly, fresh)
  }

  /** Nothing but the login is sent until it is done. */
  #logIn(
    sasl: NonNullable<SessionOptions['sasl']>,
    wire: Wire,
    server: ServerAddress,
    prime: () => void,
  ): void {
    this.#login = new Login(wire, this.options.clock, this.limitMs())
    this.#login
      .run(() => sasl(server))
      .then(() => this.#wire === wire && prime())
      .catch((error: unknown) => {
        // The connection may be gone already: a server closes it right behind its refusal.
        if (error instanceof AuthFailedError) this.finish(error, 'authFailed')
        else wire.fail(error instanceof Error ? error : new Error(String(error)))
      })
  }

  /** Watches come before requests, so that no answer is older than what its watches would have told. */
  #prime(wire: Wire, server: ServerAddress, readOnly: boolean, fresh: boolean): void {
    this.#restore(wire, fresh ? 'newSession' : 'reconnected')
    this.states.change({
      state: readOnly ? 'connectedReadOnly' : 'connected',
      previous: this.state,
      server: addressKey(server),
      sessionEpoch: this.#epoch,
      order: this.nextOrder(),
    })
    this.requests.attach(wire, readOnly, server)
    if (readOnly) {
      this.#search ??= new ReadWriteSearch(this.options, this.hosts, this)
      this.#search.start()
    }
  }

  #restore(wire: Wire, reason: 'reconnected' | 'newSession'): void {
    if (this.#restoration === undefined && !this.#watches?.size) return this.#watches?.forgetLeft()
    this.#restoration ??= new Restoration(this.watches, () => this.nextOrder())
    this.#restoration.begin(wire, this.lastZxid, reason)
  }

  // Disconnecting

  /** The connection is gone without anybody's wish. */
  lost(wire: Wire, reason: Error | undefined): void {
    if (this.#wire !== wire) return
    const server = addressKey(this.#attachment!.server)
    const cause = reason ?? new Error(`${server} closed the connection`)
    // The server closes the connection of a session that has ended; its answer may still be on its way to the caller.
    if (this.#closing !== undefined) return this.finish(this.#closing)
    const { clock, random } = this.options
    const { lastHeard } = wire
    const lived = this.requests.answered || clock.monotonic() - this.#since >= this.#timeout / 3
    if (lived) this.hosts.proven()
    const spread = this.#leaving ? 0 : dropDelay(this.#timeout, random)
    this.#disconnect()
    this.requests.detach(cause)
    if (this.#ready)
      this.states.change({
        state: 'suspended',
        previous: this.state,
        cause,
        server,
        sessionEpoch: this.#epoch,
        order: this.nextOrder(),
      })
    const left = Math.max(0, lastHeard + (4 / 3) * this.#timeout - clock.monotonic())
    // A session that no ensemble has granted cannot expire.
    if (this.#id !== 0n) {
      this.#cancelExpiry = clock.after(left, 'local expiry', () =>
        this.#expire(`no server was reached for ${Math.round((4 / 3) * this.#timeout)} ms`),
      )
    }
    this.#seek(spread)
  }

  /** Lets what is in flight be answered, then moves to another server. */
  #leave(): void {
    const wire = this.#wire!
    this.#cancelDrain()
    this.requests.hold()
    const move = (): void => {
      if (this.#wire !== wire) return
      this.#leaving = true
      wire.fail(new Error('The client moves to another server of the new list'))
    }
    this.#cancelDrain = this.options.clock.after(this.#timeout / 3, 'drain before a move', move)
    this.requests.whenIdle(move)
  }

  #disconnect(): void {
    this.#cancelWait()
    this.#cancelExpiry()
    this.#cancelDrain()
    this.#leaving = false
    this.#heartbeat.stop()
    this.#search?.stop()
    this.#attempt?.cancel()
    this.#attempt = undefined
    this.#login?.stop()
    this.#login = undefined
    const wire = this.#wire
    this.#wire = undefined
    if (wire === undefined) return
    wire.close()
    this.requests.hold()
  }

  #stop(state: ConnectionState, cause: Error): void {
    const { state: previous } = this
    this.states.change({ state, previous, cause, sessionEpoch: this.#epoch, order: this.nextOrder() })
  }

  #expire(reason: string): void {
    const error = new SessionExpiredError(`The session has expired: ${reason}`, this.#id)
    if (this.options.sessionExpiry === 'close') return this.finish(error, 'expired')
    this.#disconnect()
    this.lease.end()
    this.#stop('expired', error)
    this.requests.failAll(
      (slot) => new SessionExpiredError(error.message, error.sessionId, this.requests.facts(slot)),
    )
    this.#watches?.end(['data', 'exists', 'children'], error)
    this.#id = 0n
    this.#password = NO_PASSWORD
    this.#timeout = this.options.sessionTimeout
    this.#epoch++
    this.#awaited = true
    const order = this.nextOrder()
    this.states.change({ state: 'connecting', previous: 'expired', sessionEpoch: this.#epoch, order })
    this.#seek(0)
  }

  // Receiving

  received(bytes: Uint8Array, start: number, end: number): void {
    const reader = sharedReader.reset(bytes, start, end)
    const xid = reader.int()
    const high = reader.int()
    const low = reader.int()
    const code = reader.int()
    if (xid === Xid.ping) return this.#ponged()
    if (xid === Xid.notification) return this.#notified(reader, high, low)
    if (high > 0 || (high === 0 && low !== 0)) this.#raise(high, low)
    if (xid === Xid.auth) return this.#proved(code)
    if (xid === Xid.setWatches) {
      if (this.#restoration?.answered(code)) throw new Error('The server did not set the watches again')
      return
    }
    if (this.#login?.answered(reader, code)) return
    this.requests.answer(reader, xid, code, this.nextOrder())
  }

  #raise(high: number, low: number): void {
    if (high < this.#zxidHigh || (high === this.#zxidHigh && low >>> 0 <= this.#zxidLow >>> 0)) return
    this.#zxidHigh = high
    this.#zxidLow = low
  }

  #ponged(): void {
    const sentAt = this.#heartbeat.ponged()
    if (sentAt !== undefined && this.state === 'connected') this.lease.answered(sentAt, 'contact')
  }

  #notified(reader: Reader, high: number, low: number): void {
    const event = readEvent(reader, high, low, () => this.nextOrder())
    if (event === undefined) return
    const { type, path } = event
    const watchers = this.#watches?.fire(event) ?? 0
    const { instrumentation, redactPath } = this.options
    observe(() => instrumentation?.event?.({ type, path: redactPath?.(path) ?? path, watchers }))
  }

  #proved(code: number): void {
    const refused = this.#identities?.answered(code)
    if (refused !== undefined) this.finish(refused, 'authFailed')
  }
}
