import { OpCode, readSetSASLResponse, writeGetSASLRequest, type Reader } from '@zabra/protocol'
import type { Cancel, Clock } from '@zabra/runtime'
import { copyBytes } from '../bytes.ts'
import { EMPTY } from '../call-options.ts'
import { withMethods } from '../checks.ts'
import { errorOf } from '../error-of.ts'
import { AuthFailedError, errorFromCode } from '../errors.ts'
import type { SaslMechanism } from '../client-options.ts'
import type { Bytes } from '../types.ts'
import type { FramedConnection } from './framed-connection.ts'

type ReplyHandler = (reader: Reader, code: number) => void

/** A SASL exchange on one connection, within a time limit. No other request is sent until it is complete. */
export class SaslLogin {
  readonly #connection: FramedConnection
  readonly #cancel: Cancel
  /** Handles the next reply. */
  #replyHandler: ReplyHandler | undefined

  constructor(connection: FramedConnection, clock: Clock, timeoutMs: number) {
    this.#connection = connection
    this.#cancel = clock.after(timeoutMs, 'login', () =>
      connection.fail(new Error(`The login did not end within ${Math.round(timeoutMs)} ms`)),
    )
  }

  /**
   * Resolves when the login is complete. Rejects with an `AuthFailedError` when the server or the mechanism rejects
   * it.
   */
  async run(mechanism: () => SaslMechanism): Promise<void> {
    await logIn(mechanism(), this.#connection, (handler) => (this.#replyHandler = handler))
    this.stop()
  }

  /** Returns false if no reply of the exchange is pending. */
  onReply(reader: Reader, code: number): boolean {
    const handler = this.#replyHandler
    this.#replyHandler = undefined
    handler?.(reader, code)
    return handler !== undefined
  }

  stop(): void {
    this.#cancel()
    this.#replyHandler = undefined
  }
}

async function logIn(
  mechanism: SaslMechanism,
  connection: FramedConnection,
  setReplyHandler: (handler: ReplyHandler) => void,
): Promise<void> {
  if (!withMethods('step')(mechanism))
    throw new AuthFailedError('Expected option sasl to return an object with name and step', 'AUTH_FAILED', {
      operation: 'sasl',
    })
  const rejected = (message: string, cause?: unknown): AuthFailedError =>
    new AuthFailedError(`SASL ${mechanism.name}: ${message}`, 'AUTH_FAILED', { operation: 'sasl', cause })
  const step = async (challenge?: Bytes): Promise<Bytes | undefined> => {
    try {
      return await mechanism.step(challenge)
    } catch (cause) {
      // It may have failed because the login took too long; the one on the next connection may succeed, or has.
      if (!connection.isOpen) throw broken()
      throw rejected(errorOf(cause).message, cause)
    }
  }
  let token: Bytes | undefined = (await step()) ?? EMPTY
  for (let xid = 1; token !== undefined; xid++) {
    if (!connection.isOpen) throw broken()
    const challenge = await sendToken(connection, setReplyHandler, xid, token)
    if (challenge.code !== 0) {
      throw rejected('the server rejected the login', errorFromCode(challenge.code, { operation: 'sasl' }))
    }
    token = await step(challenge.token)
  }
}

const broken = (): Error => new Error('The connection broke during the login')

function sendToken(
  connection: FramedConnection,
  setReplyHandler: (handler: ReplyHandler) => void,
  xid: number,
  token: Bytes,
): Promise<{ code: number; token: Bytes }> {
  return new Promise((resolve) => {
    setReplyHandler((reader, code) =>
      resolve({ code, token: code === 0 ? copyBytes(readSetSASLResponse(reader).token ?? EMPTY) : EMPTY }),
    )
    const frameStart = connection.writer.beginFrame()
    connection.writer.int(xid)
    connection.writer.int(OpCode.sasl)
    writeGetSASLRequest(connection.writer, { token })
    connection.writer.endFrame(frameStart)
    connection.schedule()
  })
}
