import { hmacSha256 } from '@zabra/protocol'
import { sessionDate } from './session-id-generator.ts'

const MULTIPLIER = 0x5deece66dn
const MASK = (1n << 48n) - 1n
const SECRET = 0xb3415c00n
const PASSWORD_BYTES = 16

/**
 * Returns the password of a session by the formula of Apache ZooKeeper: 16 bytes derived from its id (client-protocol 2.5). Everyone
 * who knows the id, which the stat of an ephemeral node shows, can compute it.
 */
export function apachePasswordFor(sessionId: bigint): Uint8Array {
  const password = new Uint8Array(PASSWORD_BYTES)
  let state = (sessionId ^ SECRET ^ MULTIPLIER) & MASK
  for (let i = 0; i < PASSWORD_BYTES; i += 4) {
    state = (state * MULTIPLIER + 0xbn) & MASK
    const value = Number((state >> 16n) & 0xffffffffn)
    for (let byte = 0; byte < 4; byte++) password[i + byte] = (value >>> (byte * 8)) & 0xff
  }
  return password
}

/** The secret that all members share. */
export interface SessionSecret {
  readonly bytes: Uint8Array
  /** Sessions whose id dates from before, in milliseconds since 1970, may have a password by the formula of Apache ZooKeeper. */
  readonly since: number | undefined
  /**
   * Whether new passwords follow the formula of Apache ZooKeeper for now, since not all members know the secret. Both kinds are
   * accepted then.
   */
  readonly isPending?: boolean
}

/**
 * Computes and checks the passwords of sessions, which are the same on every member, so that a client can reconnect to any. Without
 * a secret they are those of Apache ZooKeeper, which protect from mistakes and not from attackers.
 */
export class SessionPasswords {
  #secret: SessionSecret | undefined

  constructor(secret: SessionSecret | undefined) {
    this.#secret = secret
  }

  /** Uses another secret from now on. */
  replace(secret: SessionSecret): void {
    this.#secret = secret
  }

  /**
   * Returns the password of a session. `identity` is what the client certificate of its connection proves; the session can then be
   * resumed only by a connection that proves it too.
   */
  passwordFor(sessionId: bigint, identity = ''): Uint8Array {
    if (this.#secret === undefined || this.#secret.isPending === true) return apachePasswordFor(sessionId)
    return this.#secretPasswordFor(this.#secret.bytes, sessionId, identity)
  }

  #secretPasswordFor(secret: Uint8Array, sessionId: bigint, identity: string): Uint8Array {
    const name = new TextEncoder().encode(identity)
    const message = new Uint8Array(8 + name.length)
    new DataView(message.buffer).setBigInt64(0, sessionId)
    message.set(name, 8)
    return hmacSha256(secret, message).subarray(0, PASSWORD_BYTES)
  }

  /** Whether passwords are computed with a secret, so that one can be kept from other clients. */
  get hasSecret(): boolean {
    return this.#secret !== undefined && this.#secret.isPending !== true
  }

  /** Returns the proof that a session belongs to a user, the same whether the secret is used for passwords or not yet. */
  userProofFor(sessionId: bigint, user: string): Uint8Array {
    if (this.#secret === undefined) return apachePasswordFor(sessionId)
    return this.#secretPasswordFor(this.#secret.bytes, sessionId, `user\0${user}`)
  }

  /** Whether a session with this proof belongs to the user. */
  isUserOf(sessionId: bigint, proof: Uint8Array, user: string): boolean {
    return proof.length === PASSWORD_BYTES && isEqual(this.userProofFor(sessionId, user), proof)
  }

  /** Whether a client with this password and certificate identity may resume a session. */
  matches(sessionId: bigint, password: Uint8Array | null, identity = ''): boolean {
    if (sessionId === 0n || password === null || password.length !== PASSWORD_BYTES) return false
    if (this.#secret === undefined) return isEqual(apachePasswordFor(sessionId), password)
    const { bytes, since, isPending } = this.#secret
    // A session that was opened without a certificate may be resumed with one.
    const identities = identity === '' ? [''] : [identity, '']
    if (identities.some((each) => isEqual(this.#secretPasswordFor(bytes, sessionId, each), password)))
      return true
    const isOlder = since !== undefined && sessionDate(sessionId, since) < since
    return (isPending === true || isOlder) && isEqual(apachePasswordFor(sessionId), password)
  }
}

/** Compares passwords in the same time for all wrong ones. */
function isEqual(expected: Uint8Array, password: Uint8Array): boolean {
  let difference = 0
  for (let i = 0; i < PASSWORD_BYTES; i++) difference |= expected[i]! ^ password[i]!
  return difference === 0
}
