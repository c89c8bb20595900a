import { OpCode, readSetSASLResponse, writeGetSASLRequest, type Reader } from '@zabra/protocol'
import type { Cancel, Clock } from '@zabra/runtime'
import { copyOf } from '../bytes.ts'
import { AuthFailedError, errorOf } from '../errors.ts'
import type { Bytes, SaslMechanism } from '../types.ts'
import type { Wire } from './wire.ts'

const EMPTY: Bytes = new Uint8Array(0)

type Take = (reader: Reader, code: number) => void

/** A SASL exchange on one connection. Nothing else is sent until it is done, and it has only so long. */
export class Login {
  readonly #wire: Wire
  readonly #cancel: Cancel
  /** Who waits for the next answer. */
  #take: Take | undefined

  constructor(wire: Wire, clock: Clock, limitMs: number) {
    this.#wire = wire
    this.#cancel = clock.after(limitMs, 'login', () =>
      wire.fail(new Error(`The login did not end within ${Math.round(limitMs)} ms`)),
    )
  }

  /** Resolves when the client is logged in. Rejects with an `AuthFailedError` when the server or the mechanism refuses. */
  async run(mechanism: () => SaslMechanism): Promise<void> {
    await logIn(mechanism(), this.#wire, (take) => (this.#take = take))
    this.stop()
  }

  /** False when no answer of the exchange is awaited. */
  answered(reader: Reader, code: number): boolean {
    const take = this.#take
    this.#take = undefined
    take?.(reader, code)
    return take !== undefined
  }

  stop(): void {
    this.#cancel()
    this.#take = undefined
  }
}

async function logIn(mechanism: SaslMechanism, wire: Wire, next: (take: Take) => void): Promise<void> {
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
    const challenge = await ask(wire, next, xid, token)
    if (challenge.code !== 0) {
      throw refused('the server refused the login', errorOf(challenge.code, { operation: 'sasl' }))
    }
    token = await step(challenge.token)
  }
}

function ask(
  wire: Wire,
  next: (take: Take) => void,
  xid: number,
  token: Bytes,
): Promise<{ code: number; token: Bytes }> {
  return new Promise((resolve) => {
    next((reader, code) =>
      resolve({ code, token: code === 0 ? copyOf(readSetSASLResponse(reader).token ?? EMPTY) : EMPTY }),
    )
    const mark = wire.writer.beginFrame()
    wire.writer.int(xid)
    wire.writer.int(OpCode.sasl)
    writeGetSASLRequest(wire.writer, { token })
    wire.writer.endFrame(mark)
    wire.schedule()
  })
}
