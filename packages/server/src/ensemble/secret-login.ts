import { hmacSha256, ProtocolError, Reader, Writer } from '@zabra/protocol'
import type { Connection, Random } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import {
  LoginBuffer,
  type AcceptedLogin,
  type LoginMethod,
  type LoginReader,
  type LoginStream,
  type LoginTarget,
  type MemberPort,
} from './member-login.ts'

export interface SecretLoginOptions {
  readonly self: ServerId
  /** The secret that all members share. */
  readonly secret: string
  readonly random: Pick<Random, 'bytes'>
}

/** `_zabra`, and a version of two bytes. No message of ZooKeeper begins with it. */
const MAGIC = Uint8Array.of(0x5f, 0x7a, 0x61, 0x62, 0x72, 0x61, 0, 1)
const NONCE_BYTES = 32
const PROOF_BYTES = 32
const HELLO_BYTES = MAGIC.length + 1 + 8 + 8 + NONCE_BYTES
const CHALLENGE_BYTES = MAGIC.length + NONCE_BYTES
const portCodes = { election: 1, quorum: 2 } as const

/** What both sides prove: the connecting server, the accepting server, the port, and two fresh nonces. */
interface Handshake {
  readonly port: MemberPort
  readonly from: ServerId
  readonly to: ServerId
  readonly fromNonce: Uint8Array
  readonly toNonce: Uint8Array
}

/**
 * Logins with a secret that all members share: each side proves with HMAC-SHA-256 that it knows the secret, the connecting side first,
 * so a stranger that connects gets nothing to guess the secret from (quorum-protocol 18.3).
 */
export class SecretLogin implements LoginMethod {
  readonly #options: SecretLoginOptions
  readonly #key: Uint8Array

  constructor(options: SecretLoginOptions) {
    this.#options = options
    this.#key = new TextEncoder().encode(options.secret)
  }

  accept(connection: Connection, port: MemberPort): LoginReader {
    return new SecretLoginReader(this.#options, this.#key, connection, port)
  }

  async open(stream: LoginStream, { id: to, port }: LoginTarget): Promise<boolean> {
    const { self: from, random } = this.#options
    const fromNonce = random.bytes(NONCE_BYTES)
    const hello = new Writer(HELLO_BYTES)
    hello.raw(MAGIC)
    hello.byte(portCodes[port])
    hello.longNumber(from)
    hello.longNumber(to)
    hello.raw(fromNonce)
    stream.write(hello.take())
    const challenge = await stream.read((buffer) => takeExactly(buffer, CHALLENGE_BYTES))
    expectMagic(challenge)
    const handshake = { port, from, to, fromNonce, toNonce: challenge.slice(MAGIC.length) }
    stream.write(proofOf(this.#key, 'connecting', handshake))
    const proof = await stream.read((buffer) => takeExactly(buffer, PROOF_BYTES))
    if (!isEqual(proof, proofOf(this.#key, 'accepting', handshake)))
      throw new Error('it does not know the secret in quorumSecretFile')
    return true
  }
}

/** The accepting side: a nonce for the hello, and the own proof for a right one. */
class SecretLoginReader implements LoginReader {
  readonly #options: SecretLoginOptions
  readonly #key: Uint8Array
  readonly #connection: Connection
  readonly #port: MemberPort
  readonly #buffer = new LoginBuffer()
  #handshake: Handshake | undefined

  constructor(options: SecretLoginOptions, key: Uint8Array, connection: Connection, port: MemberPort) {
    this.#options = options
    this.#key = key
    this.#connection = connection
    this.#port = port
  }

  push(chunk: Uint8Array): AcceptedLogin | undefined {
    this.#buffer.push(chunk)
    if (this.#handshake === undefined) {
      expectMagic(this.#buffer.bytes.subarray(0, MAGIC.length))
      const hello = takeExactly(this.#buffer, HELLO_BYTES)
      if (hello === undefined) return undefined
      this.#handshake = this.#answer(hello)
    }
    const proof = takeExactly(this.#buffer, PROOF_BYTES)
    return proof === undefined ? undefined : this.#verify(proof, this.#handshake)
  }

  #answer(hello: Uint8Array): Handshake {
    const reader = new Reader(hello)
    reader.raw(MAGIC.length)
    const code = reader.byte()
    const [from, to] = [reader.longNumber(), reader.longNumber()]
    const { self, random } = this.#options
    if (code !== portCodes[this.#port] || to !== self)
      throw new ProtocolError(
        `Expected a login on the ${this.#port} port of server ${self}, got one of port ${code} for server ${to}`,
        0,
        'a login',
      )
    const toNonce = random.bytes(NONCE_BYTES)
    const challenge = new Writer(CHALLENGE_BYTES)
    challenge.raw(MAGIC)
    challenge.raw(toNonce)
    this.#connection.write(challenge.take())
    return { port: this.#port, from, to, fromNonce: hello.slice(-NONCE_BYTES), toNonce }
  }

  #verify(proof: Uint8Array, handshake: Handshake): AcceptedLogin {
    if (!isEqual(proof, proofOf(this.#key, 'connecting', handshake)))
      throw new ProtocolError('it does not know the secret in quorumSecretFile', 0, 'a login')
    this.#connection.write(proofOf(this.#key, 'accepting', handshake))
    const { from } = handshake
    return {
      isAuthenticated: true,
      refusalOf: (id) =>
        id === from ? undefined : `it has logged in as server ${from} and claims to be server ${id}`,
      rest: this.#buffer.take(this.#buffer.bytes.length),
    }
  }
}

/** Throws when these bytes do not begin a login. */
function expectMagic(bytes: Uint8Array): void {
  if (!bytes.subarray(0, MAGIC.length).every((byte, i) => byte === MAGIC[i]))
    throw new ProtocolError(
      'Expected a login with the secret in quorumSecretFile, got something else',
      0,
      'a login',
    )
}

const takeExactly = (buffer: LoginBuffer, length: number): Uint8Array | undefined =>
  buffer.bytes.length < length ? undefined : buffer.take(length)

/** Returns the proof of one side. Each side has a prefix of its own, so a proof cannot be sent back to its author. */
function proofOf(key: Uint8Array, side: 'connecting' | 'accepting', handshake: Handshake): Uint8Array {
  const { port, from, to, fromNonce, toNonce } = handshake
  const writer = new Writer(128)
  writer.buffer(new TextEncoder().encode(`zabra member login 1, ${side}`))
  writer.byte(portCodes[port])
  writer.longNumber(from)
  writer.longNumber(to)
  writer.raw(fromNonce)
  writer.raw(toNonce)
  return hmacSha256(key, writer.take())
}

/** Compares proofs in a time that does not depend on where they differ. */
function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!
  return difference === 0
}
