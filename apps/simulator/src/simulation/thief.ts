import { DigestMd5Client, nonceSource, OpCode, readConnectResponse, type Reader } from '@zabra/protocol'
import type { Prng, ServerEndpoint, SimulatedWorld } from '@zabra/testing'
import { FramedConnection } from '@zabra/testkit'
import { PASSWORDS } from '../history/acl.ts'
import { connectAs } from './certificates.ts'
import type { SessionTicket } from '../workload/session-client.ts'

export interface ThiefOptions {
  readonly world: SimulatedWorld
  readonly prng: Prng
  readonly name: string
  readonly server: ServerEndpoint
  /** The session, with everything that its own client knows but the login. */
  readonly ticket: SessionTicket
  /** The user that it logs in as; undefined for no login. */
  readonly user: string | undefined
  /** The user whose certificate it shows, on the port with TLS; undefined for none. */
  readonly certificate: string | undefined
  /** Called when the server serves the session, or refuses to. */
  readonly onAnswer: (isServed: boolean) => void
}

/** A program that has the id and the password of a session that belongs to a user, and resumes it once. */
export async function steal(options: ThiefOptions): Promise<void> {
  const { world, prng, name, server, ticket, user, certificate, onAnswer } = options
  const incarnation = world.addHost(name).start()
  const connection = await connectAs(incarnation, server, certificate).catch(() => undefined)
  if (connection === undefined) return
  const login =
    user === undefined
      ? undefined
      : new DigestMd5Client({
          username: user,
          password: PASSWORDS[user]!,
          cnonce: nonceSource((length) => prng.bytes(length)),
        })
  let isResumed = false
  let isOver = false
  let mayRead = login === undefined
  const end = (isServed: boolean): void => {
    if (isOver) return
    isOver = true
    wire.destroy()
    onAnswer(isServed)
  }
  const logIn = async (challenge?: Uint8Array | null): Promise<void> => {
    try {
      const token = await login!.step(challenge)
      if (token !== undefined) return wire.sendRequest(1, OpCode.sasl, (w) => w.buffer(token))
      mayRead = true
      read()
    } catch {
      end(false)
    }
  }
  /** A login alone is no service: the session may have ended before it. */
  const read = (): void =>
    wire.sendRequest(2, OpCode.exists, (w) => {
      w.string('/w')
      w.bool(false)
    })
  const frame = (reader: Reader): void => {
    if (!isResumed) {
      if (readConnectResponse(reader).timeOut === 0) return end(false)
      isResumed = true
      return mayRead ? read() : void logIn()
    }
    reader.int()
    reader.longNumber()
    if (reader.int() !== 0) return end(false)
    if (mayRead) return end(true)
    void logIn(reader.buffer())
  }
  const wire = new FramedConnection(connection, { frame, closed: () => end(false) })
  wire.sendHandshake({ ...ticket, timeoutMs: 6000 })
}
