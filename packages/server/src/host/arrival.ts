import type { ConnectRequest } from '@zabra/protocol'
import type { Session } from '../core/sessions/index.ts'
import type { SessionId } from '../core/types.ts'
import type { ServerCore } from './core.ts'
import { factsOf, type Named } from './facts.ts'
import { greet, judge } from './handshake.ts'
import { hex } from './hex.ts'
import type { Outbox } from './outbox.ts'
import type { Asker, Entry, Requester } from './writes/index.ts'

/** What the handshake does with its connection. */
export interface ArrivingClient extends Named {
  readonly outbox: Outbox
  /** Nothing is read until the session is known. */
  wait(): void
  /** The session is there; the greeting is written when this is called with `greeted`, and requests are served from then on. */
  open(session: Session, greeted: () => void): void
  /** Sends what is written and closes. */
  finish(reason: string): void
  destroy(reason: string): void
}

/** The handshake of one client, from its request to the answer, between which others may have to be asked. */
export class Arrival implements Asker, Requester {
  readonly #core: ServerCore
  readonly #client: ArrivingClient
  readonly #request: ConnectRequest
  #timeout = 0
  /** The client is served, refused or gone. */
  #isOver = false

  constructor(core: ServerCore, client: ArrivingClient, request: ConnectRequest) {
    this.#core = core
    this.#client = client
    this.#request = request
  }

  begin(): void {
    const core = this.#core
    core.stats.sessionsRequested++
    const verdict = judge(core, this.#request)
    switch (verdict.kind) {
      case 'close':
        core.ports.logger.warn(factsOf(this.#client), verdict.reason)
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
  end(): void {
    this.#isOver = true
  }

  revalidated(valid: boolean): void {
    if (this.#isOver) return
    const core = this.#core
    const { sessionId } = this.#request
    if (!valid) return this.#refuse()
    core.connectionOf(sessionId)?.destroy('Closed: its client has connected again')
    const sessions = core.locals?.isOpen(sessionId) ? core.locals : core.sessions
    this.#open(sessions.resume(sessionId, this.#timeout, core.turnTime))
  }

  applied({ logged }: Entry): void {
    const { sessions, turnTime } = this.#core
    const session = sessions.get(logged.header.sessionId)
    if (this.#isOver || session === undefined) return
    this.#open(sessions.resume(session.id, session.timeout, turnTime))
  }

  lost(): void {
    this.#client.destroy('Closed: its session could not be stored, the disk is full')
  }

  part(): void {}

  synced(): void {}

  #create(timeout: number): void {
    const core = this.#core
    const id: SessionId = core.newSessionId()
    if (core.locals !== undefined) return this.#open(core.locals.add(id, timeout, core.turnTime))
    this.#client.wait()
    if (core.writes.createSession(id, timeout, this, core.turnTime)) return
    core.ports.logger.warn(
      factsOf(this.#client),
      'Closed a connection: no session can be stored while the disk is full',
    )
    this.#client.destroy('Closed: no session can be stored')
  }

  #resume(timeout: number): void {
    // Its former connection brings nothing any more: what it sends behind the question would count as sent from here.
    this.#core.connectionOf(this.#request.sessionId)?.destroy('Closed: its client has connected again')
    const core = this.#core
    core.stats.sessionsResumed++
    this.#timeout = timeout
    const { sessionId } = this.#request
    if (core.locals?.isOpen(sessionId)) return this.revalidated(true)
    core.writes.revalidate(sessionId, timeout, this)
    // Somebody else is asked, and the client has to wait.
    if (!this.#isOver) this.#client.wait()
  }

  #refuse(): void {
    this.#isOver = true
    this.#core.ports.logger.info(
      { ...factsOf(this.#client), session: hex(this.#request.sessionId) },
      'Refused a session: it is unknown or over, or the password is wrong',
    )
    this.#greet(undefined)
    this.#client.finish('Closed: its session is not valid')
  }

  #open(session: Session): void {
    this.#isOver = true
    this.#client.open(session, () => this.#greet(session))
  }

  #greet(session: Session | undefined): void {
    const legacy = this.#request.readOnly === undefined
    greet(this.#client.outbox, session, { legacy, readOnly: this.#core.readOnly })
  }
}
