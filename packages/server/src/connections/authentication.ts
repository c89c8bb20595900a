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
import type { ClientConnection } from './client-connection.ts'
import type { ClientService } from './client-service.ts'
import { logContext } from './log-context.ts'

interface Answer {
  readonly token: Uint8Array | null
  readonly err?: number
  /** Why the connection is closed behind the answer. */
  readonly refusal?: string
}

/** How one client proves who it is: auth packets and SASL. Both are answered at once, whatever waits. */
export class Authentication {
  readonly #core: ClientService
  readonly #client: ClientConnection
  /** Absent until the client asks for a challenge. */
  #login: DigestMd5Server | undefined

  constructor(core: ClientService, client: ClientConnection) {
    this.#core = core
    this.#client = client
  }

  /** Answers a request of type auth or sasl. Returns why the connection must be closed then, if it must. */
  handle(xid: number, type: number, reader: Reader): string | undefined {
    const answer = type === OpCode.sasl ? this.#sasl(reader) : this.#auth(reader)
    const { replyWriter: outbox } = this.#client
    const mark = outbox.beginReply(xid, 0, answer.err ?? 0)
    if (type === OpCode.sasl) outbox.writer.buffer(answer.token)
    const { turnTime, stats } = this.#core
    outbox.endReply(mark, type, turnTime, turnTime, stats.readLatency)
    return answer.refusal
  }

  #auth(reader: Reader): Answer {
    const { scheme, auth } = readAuthPacket(reader)
    const proved = this.#core.authenticate(scheme, auth, this.#client)
    if (proved !== undefined) {
      this.#client.identities = addIdentities(this.#client.identities, proved)
      return { token: null }
    }
    this.#core.stats.authFailed++
    const facts = { ...logContext(this.#client), scheme: scheme?.slice(0, 64) }
    this.#core.ports.logger.warn(facts, 'Refused credentials and closed the connection')
    return { token: null, err: ErrorCode.AUTHFAILED, refusal: 'Closed: its credentials were refused' }
  }

  #sasl(reader: Reader): Answer {
    const token = readGetSASLRequest(reader).token ?? new Uint8Array(0)
    const { saslUsers, settings, ports } = this.#core
    // SASL is switched off: an empty token says so, as the reference does.
    if (saslUsers.size === 0) return { token: null }
    if (this.#login === undefined) {
      const nonce = nonceSource((length) => ports.random.bytes(length))
      this.#login = new DigestMd5Server({ users: saslUsers, nonce })
      return { token: this.#login.challenge() }
    }
    const verdict = this.#login.evaluate(token)
    if (!verdict.ok) return this.#refuse(verdict.reason, verdict.user)
    const { user, rspauth } = verdict
    const isSuper = settings.saslSuperUsers.includes(user)
    const proved = [{ scheme: 'sasl', id: user }, ...(isSuper ? [{ scheme: 'super', id: '' }] : [])]
    this.#client.identities = addIdentities(this.#client.identities, proved)
    ports.logger.info({ ...logContext(this.#client), user, isSuper }, 'A client has logged in by SASL')
    return { token: rspauth }
  }

  #refuse(reason: string, user: string | undefined): Answer {
    const { stats, ports, settings, isSaslRequired: demandsSasl } = this.#core
    stats.authFailed++
    const stays = settings.allowSaslFailedClients && !demandsSasl
    // One that stays could fill the log with tokens that nobody has asked for.
    if (!stays || reason !== 'out of order') {
      const facts = { ...logContext(this.#client), reason, user: user?.slice(0, 64) }
      ports.logger.warn(facts, `Refused a login by SASL and ${stays ? 'kept' : 'closed'} the connection`)
    }
    if (stays) return { token: null }
    const err = demandsSasl ? ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH : ErrorCode.AUTHFAILED
    return { token: null, err, refusal: 'Closed: its login by SASL was refused' }
  }
}
