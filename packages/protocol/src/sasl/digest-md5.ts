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

/** One SASL authentication exchange of a client. */
export interface SaslClient {
  /** The mechanism, such as `DIGEST-MD5`. */
  readonly name: string
  /**
   * Resolves to the next token for the server. The first call has no challenge; each later call takes the server's response. Resolves
   * to undefined when authentication is complete. Rejects with a {@link SaslError} when it fails.
   */
  step(challenge?: Uint8Array | null): Promise<Uint8Array | undefined>
}

/** A failed authentication: a response of the server is malformed, or the server does not know the password. */
export class SaslError extends Error {
  override readonly name = 'SaslError'
}

/** Returns a new unpredictable nonce on each call. */
export type NonceSource = () => string

/** Returns a source of nonces in the form of Java's implementation, from a source of unpredictable bytes. */
export const nonceSource =
  (random: (length: number) => Uint8Array): NonceSource =>
  () =>
    toBase64(random(NONCE_BYTES))

/** Service and host name of every ZooKeeper server in DIGEST-MD5. */
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
  /** By default, `zookeeper`. */
  readonly service?: string | undefined
  /** By default, `zk-sasl-md5`, which is not the name of a machine. */
  readonly host?: string | undefined
  /** One of the realms that the server offers. By default, the first. */
  readonly realm?: string | undefined
  readonly cnonce: NonceSource
}

/** The client side of DIGEST-MD5 (RFC 2831), for one authentication. Verifies that the server knows the password too. */
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

/** Returns the value of a directive that may occur once. */
function one(directives: ReadonlyMap<string, readonly ByteText[]>, name: string): ByteText | undefined {
  const [value, ...more] = directives.get(name) ?? []
  if (more.length > 0) throw new SaslError(`Expected the directive ${name} once, got it several times.`)
  return value
}

/** Encodes for hashing: RFC 2831 uses ISO 8859-1 where possible, even for text sent in UTF-8. */
const shortest = (text: string): ByteText => (isLatin1(text) ? text : utf8(text))

function latin1(text: string): ByteText {
  if (!isLatin1(text))
    throw new SaslError(
      'The server takes names and passwords in ISO 8859-1 only, which lacks a character of these.',
    )
  return text
}

/** Why an authentication failed. For the log of the server: it is not sent to the client. */
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
      /** The user name that the client sent. */ readonly user?: string
    }

export interface DigestMd5ServerOptions {
  /** Passwords by the names of users. */
  readonly users: ReadonlyMap<string, string>
  readonly nonce: NonceSource
  readonly service?: string | undefined
  readonly host?: string | undefined
  readonly realm?: string | undefined
}

/** The server side of DIGEST-MD5 (RFC 2831), for one authentication: a challenge and a response. */
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

  /** Returns a challenge for the client. Invalidates the previous one. */
  challenge(): Uint8Array {
    const nonce = this.#nonces()
    this.#nonce = nonce
    return fromByteText(
      `realm=${quoted(utf8(this.#realm))},nonce=${quoted(nonce)},charset=utf-8,algorithm=md5-sess`,
    )
  }

  /** Verifies the response to the challenge. A challenge accepts one response, right or wrong. Never throws. */
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
    // Without a charset the name should be in ISO 8859-1, but some clients send UTF-8 without the directive.
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

  /** Returns the accepted inputs of the digest: encoded by RFC 2831 or, as some clients do, all in UTF-8. */
  #secrets(user: string, password: string): ReadonlySet<ByteText> {
    const texts = [user, this.#realm, password]
    return new Set([shortest, utf8].map((encode) => texts.map(encode).join(':')))
  }
}

const required = ['username', 'cnonce', 'digest-uri', 'response'] as const
const once = [...required, 'realm', 'nonce', 'nc', 'qop', 'charset', 'authzid', 'maxbuf', 'cipher'] as const

const refused = (reason: DigestMd5FailureReason, user?: string): DigestMd5Result =>
  user === undefined ? { ok: false, reason } : { ok: false, reason, user }
