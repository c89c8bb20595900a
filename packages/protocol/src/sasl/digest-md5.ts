import { toBase64 } from '../tables/sha1.ts'
import { digestValue, NONCE_COUNT, constantTimeEqual, type DigestParameters } from './digest-value.ts'
import {
  fromByteText,
  fromUtf8,
  isLatin1,
  parseDirectives,
  quoted,
  toByteText,
  utf8,
  type ByteText,
} from './directives.ts'

/** One login of a client by a SASL mechanism. */
export interface SaslClient {
  /** The mechanism, such as `DIGEST-MD5`. */
  readonly name: string
  /**
   * The next token for the server. The first call has no challenge; then each takes what the server has answered.
   * Resolves to undefined when the login is complete. Rejects with a {@link SaslError} when it cannot succeed.
   */
  step(challenge?: Uint8Array | null): Promise<Uint8Array | undefined>
}

/** A login that cannot succeed: the server said something that does not fit, or is not who it must be. */
export class SaslError extends Error {
  override readonly name = 'SaslError'
}

/** Where nonces come from: unpredictable text, another each time. */
export type NonceSource = () => string

/** Nonces as Java's implementation has them, from a source of unpredictable bytes. */
export const nonceSource =
  (random: (length: number) => Uint8Array): NonceSource =>
  () =>
    toBase64(random(NONCE_BYTES))

/** What ZooKeeper's servers call themselves towards DIGEST-MD5, wherever they run. */
const SERVICE = 'zookeeper'
const HOST = 'zk-sasl-md5'

/** Limits of RFC 2831. */
const MAX_CHALLENGE = 2048
const MAX_RESPONSE = 4096
/** A multiple of three, so that Base64 has no padding. */
const NONCE_BYTES = 30

export interface DigestMd5ClientOptions {
  readonly username: string
  readonly password: string
  /** `zookeeper` unless something else is meant. */
  readonly service?: string
  /** `zk-sasl-md5` unless something else is meant: it is not the name of a machine. */
  readonly host?: string
  /** Which of the realms that the server offers; the first of them when absent. */
  readonly realm?: string
  readonly cnonce: NonceSource
}

/** DIGEST-MD5 (RFC 2831), the client's side, for one login. Checks that the server knows the password too. */
export class DigestMd5Client implements SaslClient {
  readonly name = 'DIGEST-MD5'
  readonly #options: DigestMd5ClientOptions
  #state: 'new' | 'challenge' | 'proof' | 'over' = 'new'
  #expected = ''

  constructor(options: DigestMd5ClientOptions) {
    this.#options = options
  }

  async step(challenge?: Uint8Array | null): Promise<Uint8Array | undefined> {
    const state = this.#state
    this.#state = 'over'
    if (state === 'over') throw new SaslError('This login is over. Begin another one.')
    if (state === 'new') {
      this.#state = 'challenge'
      return new Uint8Array(0)
    }
    if (challenge === undefined || challenge === null || challenge.length === 0)
      throw new SaslError('The server offers no SASL login: it has answered with an empty token.')
    const directives = challenge.length > MAX_CHALLENGE ? undefined : parseDirectives(toByteText(challenge))
    if (directives === undefined)
      throw new SaslError('Expected directives of DIGEST-MD5 from the server, got something else.')
    if (state === 'proof') return this.#verify(directives)
    const response = this.#respond(directives)
    this.#state = 'proof'
    return response
  }

  #verify(directives: ReadonlyMap<string, readonly ByteText[]>): undefined {
    const [proof, ...more] = directives.get('rspauth') ?? []
    if (proof === undefined || more.length > 0 || !constantTimeEqual(proof, this.#expected))
      throw new SaslError('The server has not proved that it knows the password. Do not trust it.')
  }

  #respond(directives: ReadonlyMap<string, readonly ByteText[]>): Uint8Array {
    const { username, password, service = SERVICE, host = HOST, cnonce } = this.#options
    const nonce = one(directives, 'nonce')
    if (nonce === undefined) throw new SaslError('The server has sent no nonce.')
    if (one(directives, 'algorithm') !== 'md5-sess')
      throw new SaslError('Expected the algorithm md5-sess from the server, got another one.')
    const qops = (one(directives, 'qop') ?? 'auth').split(',').map((qop) => qop.trim())
    if (!qops.includes('auth'))
      throw new SaslError(`Expected the server to offer the qop auth, got ${qops.join(', ').slice(0, 100)}.`)
    const charset = one(directives, 'charset')
    if (charset !== undefined && charset !== 'utf-8')
      throw new SaslError('Expected the charset utf-8 or none from the server, got another one.')
    const encode = charset === undefined ? latin1 : utf8
    const realm = this.#chooseRealm(directives.get('realm') ?? [], encode)
    const binding: DigestParameters = {
      nonce,
      cnonce: cnonce(),
      digestUri: `${encode(service)}/${encode(host)}`,
      authzid: undefined,
    }
    const realmText = charset === undefined ? realm : fromUtf8(realm ?? '')
    const hashed = charset === undefined ? latin1 : shortest
    const secret = [username, realmText ?? '', password].map(hashed).join(':')
    this.#expected = digestValue(secret, '', binding)
    const response = [
      ...(charset === undefined ? [] : ['charset=utf-8']),
      `username=${quoted(encode(username))}`,
      ...(realm === undefined ? [] : [`realm=${quoted(realm)}`]),
      `nonce=${quoted(nonce)}`,
      `nc=${NONCE_COUNT}`,
      `cnonce=${quoted(binding.cnonce)}`,
      `digest-uri=${quoted(binding.digestUri)}`,
      `response=${digestValue(secret, 'AUTHENTICATE', binding)}`,
      'qop=auth',
    ].join(',')
    if (response.length > MAX_RESPONSE) throw new SaslError('The name of the user is too long.')
    return fromByteText(response)
  }

  #chooseRealm(offered: readonly ByteText[], encode: (text: string) => ByteText): ByteText | undefined {
    const { realm } = this.#options
    if (realm === undefined) return offered[0]
    const wanted = encode(realm)
    if (offered.length > 0 && !offered.includes(wanted))
      throw new SaslError(`The server does not offer the realm ${realm}.`)
    return wanted
  }
}

/** The value of a directive that may stand there once. */
function one(directives: ReadonlyMap<string, readonly ByteText[]>, name: string): ByteText | undefined {
  const [value, ...more] = directives.get(name) ?? []
  if (more.length > 0) throw new SaslError(`Expected the directive ${name} once, got it several times.`)
  return value
}

/** As RFC 2831 has it: what ISO 8859-1 can hold is hashed so, even where it is sent in UTF-8. */
const shortest = (text: string): ByteText => (isLatin1(text) ? text : utf8(text))

function latin1(text: string): ByteText {
  if (!isLatin1(text))
    throw new SaslError(
      'The server takes names and passwords in ISO 8859-1 only, which lacks a character of these.',
    )
  return text
}

/** Why a login was refused. For the log of the server: a client learns only that it was. */
export type DigestMd5FailureReason =
  | 'out of order'
  | 'malformed'
  | 'charset'
  | 'realm'
  | 'nonce'
  | 'nonce count'
  | 'qop'
  | 'digest-uri'
  | 'unknown user'
  | 'wrong password'

export type DigestMd5Result =
  | { readonly ok: true; readonly user: string; /** The server's own proof. */ readonly rspauth: Uint8Array }
  | {
      readonly ok: false
      readonly reason: DigestMd5FailureReason
      /** Whom the client claims to be. */ readonly user?: string
    }

export interface DigestMd5ServerOptions {
  /** Passwords by the names of users. */
  readonly users: ReadonlyMap<string, string>
  readonly nonce: NonceSource
  readonly service?: string
  readonly host?: string
  readonly realm?: string
}

/** DIGEST-MD5 (RFC 2831), the server's side, for one login: one challenge and one answer to it. */
export class DigestMd5Server {
  readonly #users: ReadonlyMap<string, string>
  readonly #nonces: NonceSource
  readonly #uri: string
  readonly #realm: string
  #nonce: ByteText | undefined

  constructor({ users, nonce, service = SERVICE, host = HOST, realm = HOST }: DigestMd5ServerOptions) {
    this.#users = users
    this.#nonces = nonce
    this.#uri = `${service}/${host}`.toLowerCase()
    this.#realm = realm
  }

  /** What a client must answer. A further call makes the one before it worthless. */
  challenge(): Uint8Array {
    const nonce = this.#nonces()
    this.#nonce = nonce
    return fromByteText(
      `realm=${quoted(utf8(this.#realm))},nonce=${quoted(nonce)},charset=utf-8,algorithm=md5-sess`,
    )
  }

  /** Judges the answer to the challenge. Each challenge takes one answer, right or wrong. Never throws. */
  evaluate(response: Uint8Array): DigestMd5Result {
    const nonce = this.#nonce
    this.#nonce = undefined
    if (nonce === undefined) return refused('out of order')
    const directives = response.length > MAX_RESPONSE ? undefined : parseDirectives(toByteText(response))
    if (directives === undefined) return refused('malformed')
    for (const name of once) if ((directives.get(name)?.length ?? 0) > 1) return refused('malformed')
    const first = (name: string): ByteText | undefined => directives.get(name)?.[0]
    const [name, cnonce, digestUri, proof] = required.map(first) as [string, string, string, string]
    if (required.some((directive) => !directives.has(directive))) return refused('malformed')
    const charset = first('charset')
    if (charset !== undefined && charset !== 'utf-8') return refused('charset')
    // Without a charset the name should be in ISO 8859-1, but there are clients that send UTF-8 and do not say so.
    const decoded = fromUtf8(name)
    if (decoded === undefined && charset !== undefined) return refused('charset')
    const user = decoded ?? name
    if (first('realm') !== utf8(this.#realm)) return refused('realm', user)
    if (first('nonce') !== nonce) return refused('nonce', user)
    if (first('nc') !== NONCE_COUNT) return refused('nonce count', user)
    if ((first('qop') ?? 'auth') !== 'auth') return refused('qop', user)
    if (digestUri.toLowerCase() !== this.#uri) return refused('digest-uri', user)
    const binding: DigestParameters = { nonce, cnonce, digestUri, authzid: first('authzid') }
    const password = this.#users.get(user)
    for (const secret of this.#secrets(user, password ?? nonce)) {
      if (!constantTimeEqual(digestValue(secret, 'AUTHENTICATE', binding), proof) || password === undefined)
        continue
      return { ok: true, user, rspauth: fromByteText(`rspauth=${digestValue(secret, '', binding)}`) }
    }
    return refused(password === undefined ? 'unknown user' : 'wrong password', user)
  }

  /** What the digest may be made of: texts encoded as RFC 2831 has it or, as some clients do, all of them in UTF-8. */
  #secrets(user: string, password: string): ReadonlySet<ByteText> {
    const texts = [user, this.#realm, password]
    return new Set([shortest, utf8].map((encode) => texts.map(encode).join(':')))
  }
}

const required = ['username', 'cnonce', 'digest-uri', 'response'] as const
const once = [...required, 'realm', 'nonce', 'nc', 'qop', 'charset', 'authzid', 'maxbuf', 'cipher'] as const

const refused = (reason: DigestMd5FailureReason, user?: string): DigestMd5Result =>
  user === undefined ? { ok: false, reason } : { ok: false, reason, user }
