import {
  DigestMd5Server,
  ErrorCode,
  nonceSource,
  OpCode,
  readAuthPacket,
  readGetSASLRequest,
  type Reader,
} from '@zabra/protocol'
import { addIdentities } from '../core/auth/index.ts'
import type { Session } from '../core/sessions/index.ts'
import { userNames } from '../audit/index.ts'
import type { Identity } from '../core/types.ts'
import type { ClientOrigin } from '../pipeline/index.ts'
import type { CredentialOwner } from './auth-policy.ts'
import type { ClientService } from './client-service.ts'
import { logContext, type LoggedClient } from './log-context.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** The connection that authenticates. */
export interface AuthenticatingClient extends LoggedClient, CredentialOwner {
  identities: readonly Identity[]
  readonly replyWriter: ReplyWriter
  /** Where the client connects from; undefined where nothing is audited. */
  readonly origin: ClientOrigin | undefined
  /** The session; undefined while the client logs in to resume one. */
  session: Session | undefined
  /** Whether the session, or the one to resume, belongs to the user or to none. */
  mayLogInAs(user: string): boolean
}

export interface ClosingReason {
  readonly reason: string
  readonly context: object
}

interface Response {
  readonly token: Uint8Array | null
  readonly err?: number
  /** Why the connection must close after the reply, with fields for the log. */
  readonly closing?: ClosingReason
}

/** Characters of the scheme of a client that are recorded. */
const MAX_SCHEME = 64

/** Handles the auth and sasl requests of one connection. Their replies do not wait for earlier requests. */
export class Authentication {
  readonly #service: ClientService
  readonly #client: AuthenticatingClient
  /** The SASL exchange, once the client has requested a challenge. */
  #exchange: DigestMd5Server | undefined

  constructor(service: ClientService, client: AuthenticatingClient) {
    this.#service = service
    this.#client = client
  }

  /** Replies to a request of type auth or sasl. Returns why the connection must close; undefined when it stays open. */
  handle(xid: number, type: number, body: Reader): ClosingReason | undefined {
    const response = type === OpCode.sasl ? this.#sasl(body) : this.#auth(body)
    const { replyWriter } = this.#client
    const mark = replyWriter.beginReply(xid, 0, response.err ?? 0)
    if (type === OpCode.sasl) replyWriter.writer.buffer(response.token)
    const { turnTime, stats } = this.#service
    replyWriter.endReply(mark, type, turnTime, turnTime, stats.readLatency)
    return response.closing
  }

  #auth(body: Reader): Response {
    const { scheme, auth } = readAuthPacket(body)
    const proved = this.#service.auth.authenticate(scheme, auth, this.#client)
    this.#record(scheme ?? '', proved)
    if (proved !== undefined) {
      this.#client.identities = addIdentities(this.#client.identities, proved)
      return { token: null }
    }
    this.#service.stats.authFailed++
    const context = { scheme: scheme?.slice(0, 64) }
    const reason = 'Refused credentials and closed the connection'
    return { token: null, err: ErrorCode.AUTHFAILED, closing: { reason, context } }
  }

  #sasl(body: Reader): Response {
    const token = readGetSASLRequest(body).token ?? new Uint8Array(0)
    const { auth, settings, platform, sessionUsers } = this.#service
    // SASL is off: as in Apache ZooKeeper the reply has an empty token.
    if (auth.saslUsers.size === 0) return { token: null }
    if (this.#exchange === undefined) {
      const nonce = nonceSource((length) => platform.random.bytes(length))
      this.#exchange = new DigestMd5Server({ users: auth.saslUsers, nonce })
      return { token: this.#exchange.challenge() }
    }
    const result = this.#exchange.evaluate(token)
    if (!result.ok) return this.#refuseLogin(result.reason, result.user)
    const { user, rspauth } = result
    if (!this.#client.mayLogInAs(user)) return this.#refuseLogin('the session belongs to another user', user)
    const isSuper = settings.saslSuperUsers.includes(user)
    const proved = [{ scheme: 'sasl', id: user }, ...(isSuper ? [{ scheme: 'super', id: '' }] : [])]
    this.#client.identities = addIdentities(this.#client.identities, proved)
    const { session } = this.#client
    if (session !== undefined) sessionUsers.claim(session, user)
    this.#record('sasl', proved)
    platform.logger.info({ ...logContext(this.#client), user, isSuper }, 'A client has logged in by SASL')
    return { token: rspauth }
  }

  /** Records a login in the audit log; a refused one without `proved`. */
  #record(scheme: string, proved: readonly Identity[] | undefined, error?: string): void {
    const { host, sessionId, origin } = this.#client
    this.#service.audit?.record({
      category: 'auth',
      operation: 'login',
      result: proved === undefined ? 'failure' : 'success',
      session: sessionId,
      users: userNames(proved ?? []),
      ip: host,
      origin,
      via: 'zk',
      scheme: scheme.slice(0, MAX_SCHEME),
      ...(error === undefined ? {} : { error }),
    })
  }

  #refuseLogin(reason: string, user: string | undefined): Response {
    const { auth, stats, refusals, settings } = this.#service
    stats.authFailed++
    this.#record('sasl', undefined, reason)
    const staysOpen = settings.allowSaslFailedClients && !auth.isSaslRequired
    const context = { reason, user: user?.slice(0, 64) }
    if (staysOpen) {
      const fields = { id: 'client.refused', ...logContext(this.#client), ...context }
      refusals.note(this.#client.host, fields, `Refused a login by SASL and kept the connection: ${reason}`)
      return { token: null }
    }
    const err = auth.isSaslRequired ? ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH : ErrorCode.AUTHFAILED
    return {
      token: null,
      err,
      closing: { reason: `Refused a login by SASL and closed the connection: ${reason}`, context },
    }
  }
}
