import { FrameSplitter, OpCode, Writer, Xid, type FrameSplitterOptions } from '@zabra/protocol'
import type { Clock, Connection, ConnectionHandler } from '@zabra/runtime'
import { errorOf } from '../error-of.ts'
import type { RecogniseProtocol } from './connect-failure.ts'

export interface FramedConnectionHandler {
  /**
   * Called with one frame. The bytes are a view that is valid during the call only. An error thrown here ends the
   * connection.
   */
  onFrame(bytes: Uint8Array, start: number, end: number): void
  /** Called once when the connection is lost. */
  onConnectionLost(connection: FramedConnection, cause: Error | undefined): void
}

export interface FramedConnectionOptions {
  readonly clock: Clock
  readonly maxFrameBytes: number
  readonly recogniseProtocol?: RecogniseProtocol | undefined
}

/** Sends and receives frames over one connection. All frames of a turn leave in one write. */
export class FramedConnection implements ConnectionHandler, FrameSplitterOptions {
  readonly maxLength: number
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #frames: FrameSplitter
  /** Created for the first request: most of a thousand clients may never make one. */
  #writer: Writer | undefined
  #handler: FramedConnectionHandler
  readonly #recognise: RecogniseProtocol | undefined
  #isScheduled = false
  /** Backpressure: frames collect in the writer until the connection drains. */
  #isBlocked = false
  #isOpen = true
  /** Number of writes: a frame has been sent if this has grown since it was added. */
  flushCount = 0
  sentBytes = 0
  receivedBytes = 0
  /** Monotonic milliseconds of the last write and of the last bytes received. */
  lastSentAt: number
  lastReceivedAt: number

  constructor(
    connection: Connection,
    { clock, maxFrameBytes, recogniseProtocol }: FramedConnectionOptions,
    handler: FramedConnectionHandler,
  ) {
    this.#recognise = recogniseProtocol
    this.#connection = connection
    this.#clock = clock
    this.#handler = handler
    this.lastSentAt = this.lastReceivedAt = clock.monotonic()
    this.maxLength = maxFrameBytes
    this.#frames = new FrameSplitter(this)
    connection.setHandler(this)
  }

  get writer(): Writer {
    return (this.#writer ??= new Writer(64))
  }

  /** Whether the writer holds frames that leave at the end of this turn. */
  get gathersFrames(): boolean {
    return !this.#isBlocked && this.#writer !== undefined && this.#writer.length > 0
  }

  get remoteHost(): string {
    return this.#connection.remote.host
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Replaces the handler, for example after the handshake. */
  setHandler(handler: FramedConnectionHandler): void {
    this.#handler = handler
  }

  /** Flushes the writer at the end of this turn. */
  schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#flushLater()
  }

  /**
   * A method of its own: `schedule` would otherwise allocate a closure context for each request instead of once a
   * turn.
   */
  #flushLater(): void {
    this.#clock.afterMicrotasks(() => {
      this.#isScheduled = false
      this.flush()
    })
  }

  flush(): void {
    const writer = this.#writer
    if (!this.#isOpen || this.#isBlocked || writer === undefined || writer.length === 0) return
    this.send(writer.take())
  }

  /** Sends encoded frames at once. The writer must be empty. */
  send(frames: Uint8Array): void {
    this.lastSentAt = this.#clock.monotonic()
    this.flushCount++
    this.sentBytes += frames.length
    this.#isBlocked = !this.#connection.write(frames)
  }

  ping(): void {
    // A client without requests does not create a writer for pings.
    const writer = this.#isBlocked ? this.writer : (this.#writer ?? new Writer(16))
    const frameStart = writer.beginFrame()
    writer.int(Xid.ping)
    writer.int(OpCode.ping)
    writer.endFrame(frameStart)
    if (writer === this.#writer) this.flush()
    else if (this.#isOpen) this.send(writer.take())
  }

  /** Closes the connection without a callback. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#frames.stop()
    this.#connection.destroy()
  }

  /** Ends the connection with an error and calls `onConnectionLost`. */
  fail(cause: Error): void {
    if (!this.#isOpen) return
    this.#connection.destroy(cause)
    this.#end(cause)
  }

  // Callbacks of the connection and of the frame splitter

  drain(): void {
    this.#isBlocked = false
    this.flush()
  }

  closed(cause?: Error): void {
    this.#end(cause)
  }

  frame(bytes: Uint8Array, start: number, end: number): void {
    if (this.#isOpen) this.#handler.onFrame(bytes, start, end)
  }

  data(chunk: Uint8Array): void {
    if (!this.#isOpen) return
    this.lastReceivedAt = this.#clock.monotonic()
    this.receivedBytes += chunk.length
    try {
      this.#frames.push(chunk)
    } catch (error) {
      this.fail(this.#recognise?.(error, chunk, this.#connection.remote) ?? errorOf(error))
    }
  }

  #end(cause: Error | undefined): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#frames.stop()
    this.#handler.onConnectionLost(this, cause)
  }
}
