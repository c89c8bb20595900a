import { OpCode, readSetSASLResponse, writeGetSASLRequest, type Reader } from '@zabra/protocol'
import type { Cancel, Clock } from '@zabra/runtime'
import { copyBytes } from '../bytes.ts'
import { AuthFailedError, errorFromCode } from '../errors.ts'
import type { Bytes, SaslMechanism } from '../types.ts'
import type { FramedConnection } from './framed-connection.ts'

const EMPTY: Bytes = new Uint8Array(0)

type ReplyHandler = (reader: Reader, code: number) => void

/** A SASL exchange on one connection. Nothing else is sent until it is done, and it has only so long. */
export class SaslLogin {
  readonly #wire: FramedConnection
  readonly #cancel: Cancel
  /** Who waits for the next answer. */
  #replyHandler: ReplyHandler | undefined

  constructor(wire: FramedConnection, clock: Clock, limitMs: number) {
    this.#wire = wire
    this.#cancel = clock.after(limitMs, 'login', () =>
      wire.fail(new Error(`The login did not end within ${Math.round(limitMs)} ms`)),
    )
  }

  /** Resolves when the client is logged in. Rejects with an `AuthFailedError` when the server or the mechanism refuses. */
  async run(mechanism: () => SaslMechanism): Promise<void> {
    await logIn(mechanism(), this.#wire, (take) => (this.#replyHandler = take))
    this.stop()
  }

  /** False when no answer of the exchange is awaited. */
  onReply(reader: Reader, code: number): boolean {
    const take = this.#replyHandler
    this.#replyHandler = undefined
    take?.(reader, code)
    return take !== undefined
  }

  stop(): void {
    this.#cancel()
    this.#replyHandler = undefined
  }
}

async function logIn(
  mechanism: SaslMechanism,
  wire: FramedConnection,
  next: (take: ReplyHandler) => void,
): Promise<void> {
  const refused = (message: string, cause?: unknown): AuthFailedError =>
    new AuthFailedError(`SASL ${mechanism.name}: ${message}`, 'AUTH_FAILED', { operation: 'sasl', cause })
  const step = async (challenge?: Bytes): Promise<Bytes | undefined> => {
    try {
      return await mechanism.step(challenge)
    } catch (cause) {
      throw refused(cause instanceof Error ? cause.message : String(cause), cause)
    }
  }
  let token: Bytes | undefined = (await step()) ?? EMPTY
  for (let xid = 1; token !== undefined; xid++) {
    if (!wire.isOpen) throw new Error('The connection broke during the login')
    const challenge = await sendToken(wire, next, xid, token)
    if (challenge.code !== 0) {
      throw refused('the server refused the login', errorFromCode(challenge.code, { operation: 'sasl' }))
    }
    token = await step(challenge.token)
  }
}

function sendToken(
  wire: FramedConnection,
  next: (take: ReplyHandler) => void,
  xid: number,
  token: Bytes,
): Promise<{ code: number; token: Bytes }> {
  return new Promise((resolve) => {
    next((reader, code) =>
      resolve({ code, token: code === 0 ? copyBytes(readSetSASLResponse(reader).token ?? EMPTY) : EMPTY }),
    )
    const mark = wire.writer.beginFrame()
    wire.writer.int(xid)
    wire.writer.int(OpCode.sasl)
    writeGetSASLRequest(wire.writer, { token })
    wire.writer.endFrame(mark)
    wire.schedule()
  })
}
