import {
  readConnectResponse,
  Reader,
  writeConnectRequest,
  Writer,
  type ConnectRequest,
  type ConnectResponse,
} from '@zabra/protocol'
import type { Clock, Connection } from '@zabra/runtime'
import { addressKey } from '../servers/connect-string.ts'
import type { ServerAddress, Transport } from '../types.ts'
import { abortFor } from './abort.ts'
import { dueTimesOf, type Due } from './due-times.ts'
import { Wire, type WireEvents } from './wire.ts'

export interface AttemptOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly maxFrame: number
}

export interface AttemptOwner {
  /** Milliseconds for all of it, from resolving the name to the answer. */
  limitMs(): number
  /** How the client introduces itself. */
  hello(readOnly: boolean): ConnectRequest
  /** The password is a view that holds for the call only. */
  established(server: ServerAddress, wire: Wire, response: ConnectResponse): void
  failed(server: ServerAddress, cause: Error): void
}

/** The answer to a handshake is read to its end within one call, so all attempts share a cursor. */
const sharedReader = new Reader()

/** One try to reach one server: opens the transport and shakes hands, within one limit. Its owner hears of one end. */
export class Attempt implements Due, WireEvents {
  readonly server: ServerAddress
  readonly #options: AttemptOptions
  readonly #owner: AttemptOwner
  readonly #hello: ConnectRequest
  readonly #limitMs: number
  readonly #abort: ReturnType<typeof abortFor>
  #wire: Wire | undefined
  #over = false
  due = 0
  place = -1

  constructor(options: AttemptOptions, server: ServerAddress, owner: AttemptOwner, readOnly: boolean) {
    const { transport, clock } = options
    this.server = server
    this.#options = options
    this.#owner = owner
    this.#hello = owner.hello(readOnly)
    this.#limitMs = owner.limitMs()
    this.#abort = abortFor(transport)
    dueTimesOf(clock).set(this, clock.monotonic() + this.#limitMs)
    this.#open(transport).then(
      (connection) => this.#opened(connection),
      (error: unknown) => this.#fail(errorOf(error)),
    )
  }

  /** A transport may throw instead of rejecting. */
  #open(transport: Transport): Promise<Connection> {
    try {
      return Promise.resolve(transport.open(this.server, this.#abort.signal))
    } catch (error) {
      return Promise.reject(errorOf(error))
    }
  }

  /** Gives up without a word. */
  cancel(): void {
    if (this.#over) return
    this.#end()
    this.#wire?.close()
    this.#abort.abort()
  }

  fallDue(): void {
    this.#fail(new Error(`${addressKey(this.server)} did not answer within ${Math.round(this.#limitMs)} ms`))
  }

  received(bytes: Uint8Array, start: number, end: number): void {
    const response = readConnectResponse(sharedReader.reset(bytes, start, end))
    this.#end()
    this.#owner.established(this.server, this.#wire!, response)
  }

  lost(_wire: Wire, cause: Error | undefined): void {
    this.#fail(cause ?? new Error(`${addressKey(this.server)} closed the connection during the handshake`))
  }

  #opened(connection: Connection): void {
    if (this.#over) return connection.destroy()
    try {
      this.#shakeHands(new Wire(connection, this.#options.clock, this.#options.maxFrame, this))
    } catch (error) {
      this.#fail(errorOf(error))
    }
  }

  #shakeHands(wire: Wire): void {
    this.#wire = wire
    const writer = new Writer(64)
    const mark = writer.beginFrame()
    writeConnectRequest(writer, this.#hello)
    writer.endFrame(mark)
    wire.send(writer.take())
  }

  #fail(cause: Error): void {
    if (this.#over) return
    this.cancel()
    this.#owner.failed(this.server, cause)
  }

  #end(): void {
    this.#over = true
    dueTimesOf(this.#options.clock).clear(this)
  }
}

const errorOf = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
