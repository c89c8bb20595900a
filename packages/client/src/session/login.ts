import { OpCode, readSetSASLResponse, writeGetSASLRequest, type Reader } from '@zabra/protocol'
import { copyOf } from '../bytes.ts'
import { AuthFailedError, errorOf } from '../errors.ts'
import type { Bytes, SaslMechanism } from '../types.ts'
import type { Wire } from './wire.ts'

const EMPTY: Bytes = new Uint8Array(0)

/** Where the session leaves the next answer of the exchange. */
export interface SaslAnswers {
  take: ((reader: Reader, code: number) => void) | undefined
}

/**
 * Runs a SASL exchange to its end before anything else is sent. Rejects with an `AuthFailedError` when the server or the
 * mechanism refuses.
 */
export async function logIn(mechanism: SaslMechanism, wire: Wire, answers: SaslAnswers): Promise<void> {
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
    if (!wire.open) throw new Error('The connection broke during the login')
    const challenge = await ask(wire, answers, xid, token)
    if (challenge.code !== 0) {
      throw refused('the server refused the login', errorOf(challenge.code, { operation: 'sasl' }))
    }
    token = await step(challenge.token)
  }
}

function ask(
  wire: Wire,
  answers: SaslAnswers,
  xid: number,
  token: Bytes,
): Promise<{ code: number; token: Bytes }> {
  return new Promise((resolve) => {
    answers.take = (reader, code) =>
      resolve({ code, token: code === 0 ? copyOf(readSetSASLResponse(reader).token ?? EMPTY) : EMPTY })
    const mark = wire.writer.beginFrame()
    wire.writer.int(xid)
    wire.writer.int(OpCode.sasl)
    writeGetSASLRequest(wire.writer, { token })
    wire.writer.endFrame(mark)
    wire.schedule()
  })
}
