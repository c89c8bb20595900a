import type { ConnectRequest } from '@zabra/protocol'
import type { Session } from '../core/sessions/index.ts'
import type { SessionId } from '../core/types.ts'
import type { ClientService } from './client-service.ts'
import { logContext, type LoggedClient } from './log-context.ts'
import { writeHandshakeResponse, validateHandshake } from './handshake-validation.ts'
import { formatSessionId } from './format-session-id.ts'
import type { ReplyWriter } from './reply-writer.ts'
import type { RevalidationCallback, AcceptedWrite, WriteCallback } from '../pipeline/index.ts'

/** What the handshake does with its connection. */
export interface HandshakeClient extends LoggedClient {
  readonly replyWriter: ReplyWriter
  /** Nothing is read until the session is known. */
  pauseForSession(): void
  /** The session is there; the greeting is written when this is called with `greeted`, and requests are served from then on. */
  openSession(session: Session, greeted: () => void): void
  /** Sends what is written and closes. */
  closeAfterFlush(reason: string): void
  destroy(reason: string): void
}

/** The handshake of one client, from its request to the answer, between which others may have to be asked. */
export class SessionHandshake implements RevalidationCallback, WriteCallback {
  readonly #core: ClientService
  readonly #client: HandshakeClient
  readonly #request: ConnectRequest
  #timeout = 0
  /** The client is served, refused or gone. */
  #isOver = false

  constructor(core: ClientService, client: HandshakeClient, request: ConnectRequest) {
    this.#core = core
    this.#client = client
    this.#request = request
  }

  start(): void {
    const core = this.#core
    core.stats.sessionsRequested++
    const verdict = validateHandshake(core, this.#request)
    switch (verdict.kind) {
      case 'close':
        core.ports.logger.warn(logContext(this.#client), verdict.reason)
        return this.#client.destroy(verdict.reason)
      case 'invalid':
        return this.#refuse()
      case 'create':
        return this.#create(verdict.timeout)
      case 'resume':
        return this.#resume(verdict.timeout)
    }
  }

  /** The connection is gone. */
  cancel(): void {
    this.#isOver = true
  }

  onRevalidated(valid: boolean): void {
    if (this.#isOver) return
    const core = this.#core
    const { sessionId } = this.#request
    if (!valid) return this.#refuse()
    core.connectionOfSession(sessionId)?.destroy('Closed: its client has connected again')
    const sessions = core.localSessions?.isOpen(sessionId) ? core.localSessions : core.sessions
    this.#open(sessions.resume(sessionId, this.#timeout, core.turnTime))
  }

  onApplied({ logged }: AcceptedWrite): void {
    const { sessions, turnTime } = this.#core
    const session = sessions.get(logged.header.sessionId)
    if (this.#isOver || session === undefined) return
    this.#open(sessions.resume(session.id, session.timeout, turnTime))
  }

  onLost(): void {
    this.#client.destroy('Closed: its session could not be stored, the disk is full')
  }

  onPart(): void {}

  onSynced(): void {}

  #create(timeout: number): void {
    const core = this.#core
    const id: SessionId = core.newSessionId()
    if (core.localSessions !== undefined)
      return this.#open(core.localSessions.add(id, timeout, core.turnTime))
    this.#client.pauseForSession()
    if (core.pipeline.createSession(id, timeout, this, core.turnTime)) return
    core.ports.logger.warn(
      logContext(this.#client),
      'Closed a connection: no session can be stored while the disk is full',
    )
    this.#client.destroy('Closed: no session can be stored')
  }

  #resume(timeout: number): void {
    // Its former connection brings nothing any more: what it sends behind the question would count as sent from here.
    this.#core.connectionOfSession(this.#request.sessionId)?.destroy('Closed: its client has connected again')
    const core = this.#core
    core.stats.sessionsResumed++
    this.#timeout = timeout
    const { sessionId } = this.#request
    if (core.localSessions?.isOpen(sessionId)) return this.onRevalidated(true)
    core.pipeline.revalidate(sessionId, timeout, this)
    // Somebody else is asked, and the client has to wait.
    if (!this.#isOver) this.#client.pauseForSession()
  }

  #refuse(): void {
    this.#isOver = true
    this.#core.ports.logger.info(
      { ...logContext(this.#client), session: formatSessionId(this.#request.sessionId) },
      'Refused a session: it is unknown or over, or the password is wrong',
    )
    this.#greet(undefined)
    this.#client.closeAfterFlush('Closed: its session is not valid')
  }

  #open(session: Session): void {
    this.#isOver = true
    this.#client.openSession(session, () => this.#greet(session))
  }

  #greet(session: Session | undefined): void {
    const legacy = this.#request.readOnly === undefined
    writeHandshakeResponse(this.#client.replyWriter, session, { legacy, readOnly: this.#core.isReadOnly })
  }
}
