import { ErrorCode, writeConnectResponse, type ConnectRequest } from '@zabra/protocol'
import { negotiateTimeout, type Session } from '../core/sessions/index.ts'
import type { Identity, SessionId } from '../core/types.ts'
import type { AcceptedWrite, RevalidationCallback, WriteCallback } from '../pipeline/index.ts'
import type { ClientService } from './client-service.ts'
import { LOGIN_MISSING, SESSION_REFUSED, type CloseCause } from './close-cause.ts'
import { PauseReason, type FlowControl } from './flow-control.ts'
import { formatSessionId, type LoggedClient } from './log-context.ts'
import type { ReplyWriter } from './reply-writer.ts'
import type { RefusalReason } from './stats.ts'

/** The connection of a handshake. */
export interface HandshakeClient extends LoggedClient {
  readonly flow: FlowControl
  readonly replyWriter: ReplyWriter
  readonly certificateIdentities: readonly Identity[]
  /** Handles logins, and no other requests. Calls `SessionHandshake.resume` after one. */
  waitForLogin(): void
  /** Opens the connection for requests. Calls `writeResponse` before the first of them. */
  openSession(session: Session, isResumed: boolean, writeResponse: () => void): void
  closeAfterFlush(cause: CloseCause, reason: string, context?: object): void
  destroy(cause: CloseCause, reason: string): void
}

/** The result of a check of a connect request. `timeout` is the negotiated session timeout in milliseconds. */
type HandshakeDecision =
  /** Close without a response: the client tries another server, and its session remains open. */
  | { readonly kind: 'close'; readonly cause: RefusalReason; readonly reason: string }
  /** Respond that the session is not valid. The client must start a new one. */
  | { readonly kind: 'invalid' }
  | { readonly kind: 'create'; readonly timeout: number }
  /** Resume the session if a revalidation finds it open. */
  | { readonly kind: 'resume'; readonly timeout: number }

/** Handles the connect request of one client. A new session has to be committed, and a resumed one revalidated, before the response. */
export class SessionHandshake implements RevalidationCallback, WriteCallback {
  readonly #service: ClientService
  readonly #client: HandshakeClient
  readonly #request: ConnectRequest
  readonly #startedAt: number
  #timeout = 0
  #needsLogin = false
  /** Whether the response is written or the connection closed. */
  #isDone = false

  constructor(service: ClientService, client: HandshakeClient, request: ConnectRequest) {
    this.#service = service
    this.#client = client
    this.#request = request
    this.#startedAt = service.turnTime
  }

  start(): void {
    this.#service.stats.sessionsRequested++
    const decision = validateHandshake(this.#service, this.#request, certificateOf(this.#client))
    switch (decision.kind) {
      case 'close':
        this.#service.stats.refusals[decision.cause]++
        return this.#client.destroy('refused', decision.reason)
      case 'invalid':
        return this.#refuse()
      case 'create':
        return this.#create(decision.timeout)
      case 'resume':
        this.#timeout = decision.timeout
        return this.#service.sessionUsers.isOwned(this.sessionId) ? this.#waitForLogin() : this.resume()
    }
  }

  /** The session to resume; 0 for a new one. */
  get sessionId(): SessionId {
    return this.#request.sessionId
  }

  /** Ignores all later callbacks: the connection is closed. */
  cancel(): void {
    this.#isDone = true
  }

  onRevalidated(isValid: boolean): void {
    if (this.#isDone) return
    const { sessions, localSessions, sessionUsers, turnTime } = this.#service
    const { sessionId } = this
    if (!isValid)
      return this.#needsLogin
        ? this.#client.closeAfterFlush('refused', 'Closed: its session ended before it had logged in')
        : this.#refuse()
    // This server may have learned of the user after the handshake. The next attempt of the client will have to log in.
    if (!this.#needsLogin && sessionUsers.isOwned(sessionId))
      return this.#client.destroy('login', LOGIN_MISSING)
    this.#destroyFormerConnection()
    const registry = localSessions?.isOpen(sessionId) ? localSessions : sessions
    this.#open(registry.resume(sessionId, this.#timeout, turnTime))
  }

  onApplied({ logged }: AcceptedWrite, err: number): void {
    if (err !== ErrorCode.OK) return this.onRefused()
    const { sessions, turnTime } = this.#service
    const session = sessions.get(logged.header.sessionId)
    if (this.#isDone || session === undefined) return
    this.#open(sessions.resume(session.id, session.timeout, turnTime))
  }

  onRefused(): void {
    if (this.#isDone) return
    this.#service.stats.refusals.sessions++
    this.#client.destroy('refused', SESSION_REFUSED)
  }

  onLost(): void {
    this.#client.destroy('disk_full', 'Closed: its session could not be stored, the disk is full')
  }

  onPart(): void {}

  onSynced(): void {}

  #create(timeout: number): void {
    const { localSessions, pipeline, turnTime } = this.#service
    const id: SessionId = this.#service.newSessionId()
    if (localSessions !== undefined) return this.#open(localSessions.add(id, timeout, turnTime))
    this.#client.flow.pause(PauseReason.session)
    if (pipeline.createSession(id, timeout, this)) return
    this.#client.destroy('disk_full', 'Closed: no session can be stored while the disk is full')
  }

  /** Responds as if the session were resumed: only then clients log in. The session and its connection are left alone until then. */
  #waitForLogin(): void {
    const { sessions, localSessions } = this.#service
    // Only a quorum can say that a session is over: this server may lag, or end a session that another leader keeps.
    if (localSessions?.isOpen(this.sessionId) !== true && !sessions.isOpen(this.sessionId))
      return this.#client.destroy(
        'refused',
        'Closed: its session is not open on this server, which cannot say that it is over',
      )
    this.#needsLogin = true
    this.#writeResponse({ id: this.sessionId, timeout: this.#timeout })
    this.#client.waitForLogin()
  }

  /** Resumes the session, whose password and user are right. */
  resume(): void {
    // Requests that the former connection sends from now on would count as those of this connection.
    this.#destroyFormerConnection()
    const { stats, localSessions, pipeline } = this.#service
    const { sessionId } = this
    stats.sessionsResumed++
    if (localSessions?.isOpen(sessionId)) return this.onRevalidated(true)
    pipeline.revalidate(sessionId, this.#timeout, this)
    // The answer of the leader arrives later.
    if (!this.#isDone) this.#client.flow.pause(PauseReason.session)
  }

  #destroyFormerConnection(): void {
    const former = this.#service.connections.ofSession(this.sessionId)
    former?.destroy('reconnected', 'Closed: its client has connected again')
  }

  #refuse(): void {
    this.#isDone = true
    this.#writeResponse(undefined)
    this.#client.closeAfterFlush(
      'refused',
      'Refused a session: it is unknown or over, or the password is wrong',
      {
        session: formatSessionId(this.sessionId),
      },
    )
  }

  #open(session: Session): void {
    this.#isDone = true
    const { stats, turnTime } = this.#service
    stats.sessionLatency.add(Math.max(0, turnTime - this.#startedAt))
    this.#client.openSession(session, this.sessionId !== 0n, () => {
      if (!this.#needsLogin) this.#writeResponse(session)
    })
  }

  /** Writes the connect response. Without a session it says that the session of the client is not valid. */
  #writeResponse(session: Pick<Session, 'id' | 'timeout'> | undefined): void {
    const { replyWriter } = this.#client
    // Clients before 3.4 send no readOnly field, and expect none.
    const isLegacy = this.#request.readOnly === undefined
    const mark = replyWriter.writer.beginFrame()
    writeConnectResponse(replyWriter.writer, {
      protocolVersion: 0,
      timeOut: session?.timeout ?? 0,
      sessionId: session?.id ?? 0n,
      passwd:
        session === undefined
          ? new Uint8Array(16)
          : this.#service.passwords.passwordFor(session.id, certificateOf(this.#client)),
      ...(isLegacy ? {} : { readOnly: this.#service.isReadOnly }),
    })
    replyWriter.endFrame(mark)
  }
}

/** Returns what the client certificate of a connection proves, as text; empty without one. */
const certificateOf = ({ certificateIdentities }: HandshakeClient): string =>
  certificateIdentities.flatMap(({ scheme, id }) => (scheme === 'x509' ? [id] : [])).join('\n')

/** Checks a connect request, in the order of `ZooKeeperServer.processConnectRequest`. */
function validateHandshake(
  service: ClientService,
  { lastZxidSeen, timeOut, sessionId, passwd, readOnly }: ConnectRequest,
  certificateIdentity: string,
): HandshakeDecision {
  const {
    sessions,
    localSessions,
    sessionTokens,
    settings,
    stats,
    pipeline,
    platform,
    isReadOnly,
    passwords,
  } = service
  if (!service.isAccepting)
    return { kind: 'close', cause: 'stopping', reason: 'Closed: the server is stopping' }
  if (service.isDraining) return { kind: 'close', cause: 'draining', reason: 'Closed: the server drains' }
  if (sessionTokens?.take(platform.clock.monotonic()) === false) {
    stats.connectionsDropped++
    stats.tokenDeficit.add(1)
    return {
      kind: 'close',
      cause: 'tokens',
      reason: 'Closed: more clients connect than connection_throttle_tokens allows',
    }
  }
  if (isReadOnly && readOnly !== true)
    return {
      kind: 'close',
      cause: 'read_only',
      reason: 'Closed: this server is read-only, and its client does not accept a read-only server',
    }
  const { lastVisibleZxid } = pipeline
  if (lastZxidSeen > BigInt(lastVisibleZxid)) {
    const [seen, last] = [`0x${lastZxidSeen.toString(16)}`, `0x${lastVisibleZxid.toString(16)}`]
    return {
      kind: 'close',
      cause: 'behind',
      reason: `Closed: its client has seen zxid ${seen} and this server is at ${last}; it may have lost its data`,
    }
  }
  const { minSessionTimeoutMs, maxSessionTimeoutMs, maxSessions } = settings
  const timeout = negotiateTimeout(timeOut, minSessionTimeoutMs, maxSessionTimeoutMs)
  if (sessionId === 0n) {
    const count = sessions.size + (localSessions?.size ?? 0)
    if (maxSessions !== 0 && count >= maxSessions)
      return {
        kind: 'close',
        cause: 'sessions',
        reason: `Closed: there are ${count} sessions and maxSessions is ${maxSessions}`,
      }
    const refusal = service.memory.refusalOfSession(service.turnTime)
    return refusal === undefined
      ? { kind: 'create', timeout }
      : { kind: 'close', cause: 'memory', reason: `Closed: no session can be created, ${refusal}` }
  }
  // A read-only server does not know which global sessions are open, so it must not respond that one has expired.
  if (isReadOnly && localSessions?.isOpen(sessionId) !== true)
    return {
      kind: 'close',
      cause: 'read_only',
      reason: 'Closed: this server is read-only and does not know whether the session is open',
    }
  return passwords.matches(sessionId, passwd, certificateIdentity)
    ? { kind: 'resume', timeout }
    : { kind: 'invalid' }
}
