import { ErrorCode, OpCode, writeAuthPacket, Xid } from '@zabra/protocol'
import { toBytes } from '../call-options.ts'
import { AuthFailedError, errorFromCode, type ZooKeeperError } from '../errors.ts'
import type { AuthInfo } from '../types.ts'
import type { FramedConnection } from './framed-connection.ts'

interface Entry {
  readonly identity: AuthInfo
  /** Callback for the first reply; undefined once called, since later connections authenticate again. */
  settle: ((error: ZooKeeperError | undefined) => void) | undefined
}

/** The identities of a client, sent on every connection before any request, in the order in which they were added. */
export class Identities {
  readonly #entries: Entry[]
  /** Sent on the current connection and not answered yet. */
  #sent: Entry[] = []

  constructor(identities: readonly AuthInfo[]) {
    this.#entries = identities.map((identity) => ({ identity, settle: undefined }))
  }

  add(
    identity: AuthInfo,
    connection: FramedConnection | undefined,
    settle: (error: ZooKeeperError | undefined) => void,
  ): void {
    const entry = { identity, settle }
    this.#entries.push(entry)
    if (connection !== undefined) this.#send(entry, connection)
  }

  /** Authenticates on a new connection. */
  sendAll(connection: FramedConnection): void {
    this.#sent = []
    for (const entry of this.#entries) this.#send(entry, connection)
  }

  /**
   * Records the reply to the oldest auth packet. Returns the error that closes the client if the server rejected it.
   */
  onReply(code: number): AuthFailedError | undefined {
    const entry = this.#sent.shift()
    const { settle } = entry ?? {}
    if (entry !== undefined) entry.settle = undefined
    const operation = 'addAuth'
    const error = code === 0 ? undefined : errorFromCode(code, { operation })
    settle?.(error)
    if (error === undefined) return undefined
    // Servers close the connection after a rejection, and would do so each time: no connection is possible with this
    // identity.
    const message = `addAuth: the server rejected credentials of scheme ${entry?.identity.scheme ?? 'unknown'}`
    return new AuthFailedError(message, 'AUTH_FAILED', { operation, cause: error }, ErrorCode.AUTHFAILED)
  }

  /** Calls all pending callbacks with an error. */
  failAll(error: ZooKeeperError): void {
    for (const entry of this.#entries) {
      const { settle } = entry
      entry.settle = undefined
      settle?.(error)
    }
  }

  #send(entry: Entry, connection: FramedConnection): void {
    const { writer } = connection
    const frameStart = writer.beginFrame()
    writer.int(Xid.auth)
    writer.int(OpCode.auth)
    const { scheme, auth } = entry.identity
    writeAuthPacket(writer, { type: 0, scheme, auth: toBytes(auth) })
    writer.endFrame(frameStart)
    this.#sent.push(entry)
    connection.schedule()
  }
}
