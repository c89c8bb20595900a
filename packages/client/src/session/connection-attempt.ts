import {
  readConnectResponse,
  Reader,
  writeConnectRequest,
  Writer,
  type ConnectRequest,
  type ConnectResponse,
} from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { errorOf } from '../error-of.ts'
import { addressText } from '../servers/connect-string.ts'
import type { ServerAddress, Transport } from '../platform.ts'
import { abortControllerFor } from './abort.ts'
import { timerQueueOf, type TimerEntry } from './timer-queue.ts'
import {
  FramedConnection,
  type FramedConnectionHandler,
  type FramedConnectionOptions,
} from './framed-connection.ts'

export interface AttemptOptions extends FramedConnectionOptions {
  readonly transport: Transport
}

export interface AttemptCallbacks {
  /** Milliseconds for the whole attempt, from name resolution to the connect response. */
  attemptTimeoutMs(): number
  /** Returns the connect request to send. */
  connectRequest(readOnly: boolean): ConnectRequest
  /** The password in `response` is a view that is valid during the call only. */
  onAttemptEstablished(server: ServerAddress, framed: FramedConnection, response: ConnectResponse): void
  onAttemptFailed(server: ServerAddress, cause: Error): void
}

/** A connect response is decoded within one call, so all attempts share a reader. */
const sharedReader = new Reader()

/**
 * One attempt to connect to one server: opens the transport and performs the handshake, within one time limit. Calls
 * exactly one of `onAttemptEstablished` and `onAttemptFailed`, unless cancelled.
 */
export class ConnectionAttempt implements TimerEntry, FramedConnectionHandler {
  readonly server: ServerAddress
  readonly #options: AttemptOptions
  readonly #callbacks: AttemptCallbacks
  readonly #connectRequest: ConnectRequest
  readonly #timeoutMs: number
  readonly #abort: ReturnType<typeof abortControllerFor>
  #connection: FramedConnection | undefined
  #isSettled = false
  dueAt = 0
  heapIndex = -1

  constructor(
    options: AttemptOptions,
    server: ServerAddress,
    callbacks: AttemptCallbacks,
    readOnly: boolean,
  ) {
    const { transport, clock } = options
    this.server = server
    this.#options = options
    this.#callbacks = callbacks
    this.#connectRequest = callbacks.connectRequest(readOnly)
    this.#timeoutMs = callbacks.attemptTimeoutMs()
    this.#abort = abortControllerFor(transport)
    timerQueueOf(clock).set(this, clock.monotonic() + this.#timeoutMs)
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

  /** Cancels the attempt without a callback. */
  cancel(): void {
    if (this.#isSettled) return
    this.#end()
    this.#connection?.close()
    this.#abort.abort()
  }

  onDue(): void {
    this.#fail(
      new Error(`${addressText(this.server)} did not answer within ${Math.round(this.#timeoutMs)} ms`),
    )
  }

  onFrame(bytes: Uint8Array, start: number, end: number): void {
    const response = readConnectResponse(sharedReader.reset(bytes, start, end))
    this.#end()
    this.#callbacks.onAttemptEstablished(this.server, this.#connection!, response)
  }

  onConnectionLost(_connection: FramedConnection, cause: Error | undefined): void {
    const { scheme } = this.server
    const advice =
      scheme === 'tls' || scheme === 'wss' ? '; it may not accept the certificate of this client' : ''
    const message = `${addressText(this.server)} closed the connection during the handshake${advice}`
    this.#fail(cause ?? new Error(message))
  }

  #opened(connection: Connection): void {
    if (this.#isSettled) return connection.destroy()
    try {
      this.#sendHandshake(new FramedConnection(connection, this.#options, this))
    } catch (error) {
      this.#fail(errorOf(error))
    }
  }

  #sendHandshake(framed: FramedConnection): void {
    this.#connection = framed
    const writer = new Writer(64)
    const frameStart = writer.beginFrame()
    writeConnectRequest(writer, this.#connectRequest)
    writer.endFrame(frameStart)
    framed.send(writer.take())
  }

  #fail(cause: Error): void {
    if (this.#isSettled) return
    this.cancel()
    this.#callbacks.onAttemptFailed(this.server, cause)
  }

  #end(): void {
    this.#isSettled = true
    timerQueueOf(this.#options.clock).clear(this)
  }
}
