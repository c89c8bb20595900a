import { FrameSplitter, OpCode, Writer, Xid, type FrameSplitterOptions } from '@zabra/protocol'
import type { Clock, Connection, ConnectionHandler } from '@zabra/runtime'

export interface FramedConnectionEvents {
  /** One frame. The bytes are a view that holds for the call only. What this throws ends the connection. */
  onFrame(bytes: Uint8Array, start: number, end: number): void
  /** The connection is gone. Told once. */
  onConnectionLost(wire: FramedConnection, cause: Error | undefined): void
}

/** Frames over one connection. All frames of a turn leave in one write. */
export class FramedConnection implements ConnectionHandler, FrameSplitterOptions {
  readonly maxLength: number
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #frames: FrameSplitter
  /** Made for the first request: most of a thousand clients may never have one. */
  #writer: Writer | undefined
  #events: FramedConnectionEvents
  #isScheduled = false
  /** The connection takes no more until it says so; frames gather in the writer. */
  #isBlocked = false
  #isOpen = true
  /** Writes so far: a frame has left when there were more than when it was put in. */
  flushCount = 0
  /** Monotonic milliseconds of the last write and of the last bytes that came. */
  lastSentAt: number
  lastReceivedAt: number

  constructor(connection: Connection, clock: Clock, maxFrame: number, events: FramedConnectionEvents) {
    this.#connection = connection
    this.#clock = clock
    this.#events = events
    this.lastSentAt = this.lastReceivedAt = clock.monotonic()
    this.maxLength = maxFrame
    this.#frames = new FrameSplitter(this)
    connection.setHandler(this)
  }

  get writer(): Writer {
    return (this.#writer ??= new Writer(64))
  }

  /** Whether frames wait to leave. */
  get hasBufferedFrames(): boolean {
    return this.#writer !== undefined && this.#writer.length > 0
  }

  get remoteHost(): string {
    return this.#connection.remote.host
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Hands the events over to somebody else, such as from a handshake to a session. */
  listen(events: FramedConnectionEvents): void {
    this.#events = events
  }

  /** Sends what is in the writer with this turn. */
  schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#flushLater()
  }

  /** Apart from `schedule`, which would make a context for the closure at each request and not only once a turn. */
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

  /** Sends frames at once that were written elsewhere. Nothing may wait to leave. */
  send(frames: Uint8Array): void {
    this.lastSentAt = this.#clock.monotonic()
    this.flushCount++
    this.#isBlocked = !this.#connection.write(frames)
  }

  ping(): void {
    // A client without requests needs no writer for this.
    const writer = this.#isBlocked ? this.writer : (this.#writer ?? new Writer(16))
    const mark = writer.beginFrame()
    writer.int(Xid.ping)
    writer.int(OpCode.ping)
    writer.endFrame(mark)
    if (writer === this.#writer) this.flush()
    else if (this.#isOpen) this.send(writer.take())
  }

  /** Ends the connection, at once or after what is written has left. Nothing is told any more. */
  close(gently = false): void {
    if (!this.#isOpen) return
    if (gently) this.flush()
    this.#isOpen = false
    this.#frames.stop()
    if (gently) this.#connection.end()
    else this.#connection.destroy()
  }

  /** Ends the connection and says so. */
  fail(cause: Error): void {
    if (!this.#isOpen) return
    this.#connection.destroy(cause)
    this.#end(cause)
  }

  // What the connection and the splitter of frames tell

  drain(): void {
    this.#isBlocked = false
    this.flush()
  }

  closed(cause?: Error): void {
    this.#end(cause)
  }

  frame(bytes: Uint8Array, start: number, end: number): void {
    if (this.#isOpen) this.#events.onFrame(bytes, start, end)
  }

  data(chunk: Uint8Array): void {
    if (!this.#isOpen) return
    this.lastReceivedAt = this.#clock.monotonic()
    try {
      this.#frames.push(chunk)
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #end(cause: Error | undefined): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#frames.stop()
    this.#events.onConnectionLost(this, cause)
  }
}
