import {
  DigestMd5Client,
  DigestMd5Server,
  nonceSource,
  ProtocolError,
  Reader,
  Writer,
  type NonceSource,
} from '@zabra/protocol'
import type { Connection, Random } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import {
  LoginBuffer,
  type AcceptedLogin,
  type LoginMethod,
  type LoginReader,
  type LoginStream,
} from './member-login.ts'

/** Options of logins by SASL between members (quorum-protocol 18.1). */
export interface SaslLoginOptions {
  /** Passwords of the users who may connect. */
  readonly users: ReadonlyMap<string, string>
  /** The user name with which this server connects; undefined where it does not log in. */
  readonly self: { readonly user: string; readonly password: string } | undefined
  /** Whether another member may connect without a login. */
  readonly isOptional: boolean
  /** Users by the ids of servers; a server in it may be that user only. Empty where any user may be any server. */
  readonly userOf: ReadonlyMap<ServerId, string>
  readonly random: Pick<Random, 'bytes'>
}

/** Names that all Apache ZooKeeper servers use in DIGEST-MD5 between members. */
const names = {
  service: 'zookeeper-quorum',
  host: 'zk-quorum-sasl-md5',
  realm: 'zk-quorum-sasl-md5',
} as const

const MAGIC = Uint8Array.of(0x5f, 0x24, 0x35, 0x01, 0x35, 0x01, 0xed, 0xcc)
const Status = { inProgress: 0, success: 1, error: -1 } as const
/** The limit of RFC 2831 for a response. */
const MAX_TOKEN_BYTES = 4096
const HEAD_BYTES = MAGIC.length + 8
const NO_BYTES = new Uint8Array(0)

/** Logins by DIGEST-MD5, as Apache ZooKeeper has them between members. A login that fails always ends the connection. */
export class SaslLogin implements LoginMethod {
  readonly #options: SaslLoginOptions
  readonly #nonce: NonceSource

  constructor(options: SaslLoginOptions) {
    this.#options = options
    this.#nonce = nonceSource((length) => options.random.bytes(length))
  }

  accept(connection: Connection): LoginReader {
    return new SaslLoginReader(this.#options, this.#nonce, connection)
  }

  async open(stream: LoginStream): Promise<boolean> {
    const { self } = this.#options
    if (self === undefined) return false
    const client = new DigestMd5Client({
      ...names,
      username: self.user,
      password: self.password,
      cnonce: this.#nonce,
    })
    let token = await client.step()
    for (;;) {
      stream.write(encodePacket(Status.inProgress, token ?? NO_BYTES))
      const packet = await stream.read(takePacket)
      if (packet.status === Status.error) throw new Error('it refused the user or the password')
      token = await client.step(packet.token)
      // Only a server that has proved that it knows the password ends the exchange.
      if (token === undefined && packet.status === Status.success) return true
      if (token === undefined || packet.status === Status.success)
        throw new Error('it ended the login before both sides had proved themselves')
    }
  }
}

/** The accepting side: a challenge, and the verdict on the response. */
class SaslLoginReader implements LoginReader {
  readonly #options: SaslLoginOptions
  readonly #connection: Connection
  readonly #exchange: DigestMd5Server
  readonly #buffer = new LoginBuffer()
  #isChallenged = false

  constructor(options: SaslLoginOptions, nonce: NonceSource, connection: Connection) {
    this.#options = options
    this.#connection = connection
    this.#exchange = new DigestMd5Server({ ...names, users: options.users, nonce })
  }

  push(chunk: Uint8Array): AcceptedLogin | undefined {
    this.#buffer.push(chunk)
    if (!this.#isChallenged && !startsLikeMagic(this.#buffer.bytes)) return this.#acceptWithoutLogin()
    for (;;) {
      const packet = takePacket(this.#buffer)
      if (packet === undefined) return undefined
      if (packet.status !== Status.inProgress)
        throw new ProtocolError(`Expected a login in progress, got the status ${packet.status}`, 0, 'a login')
      const login = this.#isChallenged ? this.#verify(packet.token) : this.#challenge(packet.token)
      if (login !== undefined) return login
    }
  }

  #acceptWithoutLogin(): AcceptedLogin {
    if (!this.#options.isOptional)
      throw new ProtocolError(
        'Expected a login by SASL, got none: quorum.auth.serverRequireSasl is on',
        0,
        'a login',
      )
    const rest = this.#buffer.take(this.#buffer.bytes.length)
    return { isAuthenticated: false, refusalOf: () => undefined, rest }
  }

  #challenge(token: Uint8Array): undefined {
    if (token.length > 0) this.#refuse('it began with a response')
    this.#isChallenged = true
    this.#connection.write(encodePacket(Status.inProgress, this.#exchange.challenge()))
  }

  #verify(token: Uint8Array): AcceptedLogin {
    const result = this.#exchange.evaluate(token)
    if (!result.ok) {
      const who = result.user === undefined ? '' : ` of ${JSON.stringify(result.user.slice(0, 64))}`
      return this.#refuse(`its login by SASL${who} failed: ${result.reason}`)
    }
    this.#connection.write(encodePacket(Status.success, result.rspauth))
    const { user } = result
    return {
      isAuthenticated: true,
      refusalOf: (id) => this.#refusalOf(user, id),
      rest: this.#buffer.take(this.#buffer.bytes.length),
    }
  }

  #refusalOf(user: string, id: ServerId): string | undefined {
    const { userOf } = this.#options
    if (userOf.size === 0 || userOf.get(id) === user) return undefined
    const wanted = userOf.get(id)
    return wanted === undefined
      ? `expected a server that quorum.auth.users names, got server ${id} as ${user}`
      : `expected the user ${wanted} for server ${id}, got ${user}`
  }

  #refuse(reason: string): never {
    this.#connection.write(encodePacket(Status.error, NO_BYTES))
    throw new ProtocolError(reason, 0, 'a login')
  }
}

const startsLikeMagic = (bytes: Uint8Array): boolean =>
  bytes.subarray(0, MAGIC.length).every((byte, i) => byte === MAGIC[i])

function encodePacket(status: number, token: Uint8Array): Uint8Array {
  const writer = new Writer(HEAD_BYTES + token.length)
  writer.raw(MAGIC)
  writer.int(status)
  writer.buffer(token)
  return writer.take()
}

interface SaslPacket {
  readonly status: number
  readonly token: Uint8Array
}

/** Takes a packet from the front; returns undefined until it is complete. Throws a `ProtocolError`. */
function takePacket(buffer: LoginBuffer): SaslPacket | undefined {
  const { bytes } = buffer
  if (!startsLikeMagic(bytes))
    throw new ProtocolError('Expected a packet of a login by SASL, got something else', 0, 'a login')
  if (bytes.length < HEAD_BYTES) return undefined
  const reader = new Reader(bytes)
  reader.raw(MAGIC.length)
  const status = reader.int()
  const length = Math.max(0, reader.int())
  if (length > MAX_TOKEN_BYTES)
    throw new ProtocolError(
      `Expected a token of at most ${MAX_TOKEN_BYTES} bytes, got a length of ${length}`,
      0,
      'a login',
    )
  if (bytes.length < HEAD_BYTES + length) return undefined
  buffer.take(HEAD_BYTES)
  return { status, token: buffer.take(length) }
}
