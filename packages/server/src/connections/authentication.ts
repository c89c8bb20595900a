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
import type { Identity } from '../core/types.ts'
import type { CredentialOwner } from './auth-policy.ts'
import type { ClientService } from './client-service.ts'
import { logContext, type LoggedClient } from './log-context.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** The connection that authenticates. */
export interface AuthenticatingClient extends LoggedClient, CredentialOwner {
  identities: readonly Identity[]
  readonly replyWriter: ReplyWriter
}

interface Response {
  readonly token: Uint8Array | null
  readonly err?: number
  /** Why the connection must close after the reply. */
  readonly closeReason?: string
}

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
  handle(xid: number, type: number, body: Reader): string | undefined {
    const response = type === OpCode.sasl ? this.#sasl(body) : this.#auth(body)
    const { replyWriter } = this.#client
    const mark = replyWriter.beginReply(xid, 0, response.err ?? 0)
    if (type === OpCode.sasl) replyWriter.writer.buffer(response.token)
    const { turnTime, stats } = this.#service
    replyWriter.endReply(mark, type, turnTime, turnTime, stats.readLatency)
    return response.closeReason
  }

  #auth(body: Reader): Response {
    const { scheme, auth } = readAuthPacket(body)
    const proved = this.#service.auth.authenticate(scheme, auth, this.#client)
    if (proved !== undefined) {
      this.#client.identities = addIdentities(this.#client.identities, proved)
      return { token: null }
    }
    this.#service.stats.authFailed++
    const fields = { ...logContext(this.#client), scheme: scheme?.slice(0, 64) }
    this.#service.platform.logger.warn(fields, 'Refused credentials and closed the connection')
    return { token: null, err: ErrorCode.AUTHFAILED, closeReason: 'Closed: its credentials were refused' }
  }

  #sasl(body: Reader): Response {
    const token = readGetSASLRequest(body).token ?? new Uint8Array(0)
    const { auth, settings, platform } = this.#service
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
    const isSuper = settings.saslSuperUsers.includes(user)
    const proved = [{ scheme: 'sasl', id: user }, ...(isSuper ? [{ scheme: 'super', id: '' }] : [])]
    this.#client.identities = addIdentities(this.#client.identities, proved)
    platform.logger.info({ ...logContext(this.#client), user, isSuper }, 'A client has logged in by SASL')
    return { token: rspauth }
  }

  #refuseLogin(reason: string, user: string | undefined): Response {
    const { auth, stats, platform, settings } = this.#service
    stats.authFailed++
    const staysOpen = settings.allowSaslFailedClients && !auth.isSaslRequired
    // A connection that stays open could fill the log with tokens that no challenge has requested.
    if (!staysOpen || reason !== 'out of order') {
      const fields = { ...logContext(this.#client), reason, user: user?.slice(0, 64) }
      platform.logger.warn(
        fields,
        `Refused a login by SASL and ${staysOpen ? 'kept' : 'closed'} the connection`,
      )
    }
    if (staysOpen) return { token: null }
    const err = auth.isSaslRequired ? ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH : ErrorCode.AUTHFAILED
    return { token: null, err, closeReason: 'Closed: its login by SASL was refused' }
  }
}
