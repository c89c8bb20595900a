import { ErrorCode, OpCode, writeAuthPacket, Xid } from '@zabra/protocol'
import { AuthFailedError, errorFromCode, type ZooKeeperError } from '../errors.ts'
import type { AuthInfo } from '../types.ts'
import type { FramedConnection } from './framed-connection.ts'

interface Entry {
  readonly identity: AuthInfo
  /** Who waits for the answer of the first proof; repeats have nobody. */
  settle: ((error: ZooKeeperError | undefined) => void) | undefined
}

/** The identities of a client: proved on every connection before anything else, in the order in which they were added. */
export class Identities {
  readonly #entries: Entry[]
  /** Sent on the connection that stands, and not answered yet. */
  #sent: Entry[] = []

  constructor(identities: readonly AuthInfo[]) {
    this.#entries = identities.map((identity) => ({ identity, settle: undefined }))
  }

  add(
    identity: AuthInfo,
    wire: FramedConnection | undefined,
    settle: (error: ZooKeeperError | undefined) => void,
  ): void {
    const entry = { identity, settle }
    this.#entries.push(entry)
    if (wire !== undefined) this.#send(entry, wire)
  }

  /** A new connection stands. */
  sendAll(wire: FramedConnection): void {
    this.#sent = []
    for (const entry of this.#entries) this.#send(entry, wire)
  }

  /** The server has answered the oldest proof. Returns the error that ends the client, if that is what it was. */
  onReply(code: number): AuthFailedError | undefined {
    const entry = this.#sent.shift()
    const { settle } = entry ?? {}
    if (entry !== undefined) entry.settle = undefined
    const operation = 'addAuth'
    const error = code === 0 ? undefined : errorFromCode(code, { operation })
    settle?.(error)
    if (error === undefined) return undefined
    // Servers close the connection after a refusal, and would again: nothing works with this identity in the list.
    const message = `addAuth: the server refused credentials of scheme ${entry?.identity.scheme ?? 'unknown'}`
    return new AuthFailedError(message, 'AUTH_FAILED', { operation, cause: error }, ErrorCode.AUTHFAILED)
  }

  /** Nobody will be answered any more. */
  failAll(error: ZooKeeperError): void {
    for (const entry of this.#entries) {
      const { settle } = entry
      entry.settle = undefined
      settle?.(error)
    }
  }

  #send(entry: Entry, wire: FramedConnection): void {
    const { writer } = wire
    const mark = writer.beginFrame()
    writer.int(Xid.auth)
    writer.int(OpCode.auth)
    writeAuthPacket(writer, { type: 0, ...entry.identity })
    writer.endFrame(mark)
    this.#sent.push(entry)
    wire.schedule()
  }
}
