import { readConnectResponse, Reader, writeConnectRequest, type ConnectResponse } from '@zabra/protocol'
import type { Cancel, Clock } from '@zabra/runtime'
import { addressKey } from '../servers/connect-string.ts'
import type { Bytes, ServerAddress, Transport } from '../types.ts'
import { Wire } from './wire.ts'

export interface AttemptOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly server: ServerAddress
  /** Milliseconds for all of it, from resolving the name to the answer. */
  readonly limitMs: number
  readonly maxFrame: number
  readonly hello: {
    readonly lastZxidSeen: bigint
    readonly timeOut: number
    readonly sessionId: bigint
    readonly passwd: Bytes
    readonly readOnly: boolean
  }
  /** The password is a view that holds for the call only. */
  readonly established: (wire: Wire, response: ConnectResponse) => void
  readonly failed: (cause: Error) => void
}

/** One try to reach one server: opens the transport and shakes hands, within one limit. Ends in one of the two calls. */
export class Attempt {
  readonly #options: AttemptOptions
  readonly #abort = new AbortController()
  readonly #cancelLimit: Cancel
  #wire: Wire | undefined
  #over = false

  constructor(options: AttemptOptions) {
    this.#options = options
    const { clock, limitMs, server, transport } = options
    this.#cancelLimit = clock.after(limitMs, 'connection attempt', () =>
      this.#fail(new Error(`${addressKey(server)} did not answer within ${Math.round(limitMs)} ms`)),
    )
    // A transport may throw instead of rejecting.
    new Promise<Awaited<ReturnType<Transport['open']>>>((resolve) =>
      resolve(transport.open(server, this.#abort.signal)),
    )
      .then((connection) => {
        if (this.#over) return connection.destroy()
        this.#shakeHands(new Wire(connection, clock, options.maxFrame, this.#events()))
      })
      .catch((error: unknown) => this.#fail(error instanceof Error ? error : new Error(String(error))))
  }

  get server(): ServerAddress {
    return this.#options.server
  }

  /** Gives up without a word. */
  cancel(): void {
    if (this.#over) return
    this.#end()
    this.#wire?.close()
    this.#abort.abort()
  }

  #events(): ConstructorParameters<typeof Wire>[3] {
    return {
      received: (bytes, start, end) => {
        const response = readConnectResponse(new Reader(bytes, start, end))
        this.#end()
        this.#options.established(this.#wire!, response)
      },
      lost: (_wire, cause) =>
        this.#fail(
          cause ??
            new Error(`${addressKey(this.#options.server)} closed the connection during the handshake`),
        ),
    }
  }

  #shakeHands(wire: Wire): void {
    this.#wire = wire
    const mark = wire.writer.beginFrame()
    writeConnectRequest(wire.writer, { protocolVersion: 0, ...this.#options.hello })
    wire.writer.endFrame(mark)
    wire.flush()
  }

  #fail(cause: Error): void {
    if (this.#over) return
    this.cancel()
    this.#options.failed(cause)
  }

  #end(): void {
    this.#over = true
    this.#cancelLimit()
  }
}
