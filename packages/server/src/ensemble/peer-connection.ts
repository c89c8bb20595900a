import { BufferPool, ProtocolError, Writer } from '@zabra/protocol'
import type { Cancel, Clock, Connection } from '@zabra/runtime'
import { flushWriter } from '../connections/flow-control.ts'
import type { Identity, Zxid } from '../core/types.ts'
import { writeForwardedRequest, writePacket, type ForwardedRequest } from '../core/zab/index.ts'
import type { PacketQueueStats } from './packet-queue-stats.ts'

/** Options of a connection of the quorum port, on either side. */
export interface PeerConnectionOptions {
  readonly connection: Connection
  readonly clock: Clock
  /** The most bytes that may be queued for the peer; with more the connection fails. */
  readonly maxUnsentBytes: number
  /** Called with received bytes, in an array of their own. A `ProtocolError` that it throws ends the connection. */
  readonly received: (chunk: Uint8Array) => void
  /** Measures the packets that wait. */
  readonly queueStats?: PacketQueueStats
  /** Called when a stream can be continued. */
  readonly drained?: () => void
  /** Called once when the connection is lost or has failed, and not after `close`. */
  readonly lost: (reason: string) => void
}

/** How long the last bytes may take to be sent after `close`, in milliseconds. */
const CLOSE_TIMEOUT_MS = 1000
/**
 * Bytes that are flushed at once; fewer wait for the other input of the same turn. With a usual packet more they fit into the largest
 * buffer of the pool.
 */
const FLUSH_BYTES = 60_000

/**
 * A connection between a leader and a learner. Packets of one turn of the event loop are sent in one write, queued bytes are
 * bounded, and silence of the peer fails the connection. A stream (a snapshot) is sent between two packets; packets that are sent
 * meanwhile are queued behind it.
 */
export class PeerConnection {
  readonly #options: PeerConnectionOptions
  readonly #out = new Writer(4096, new BufferPool())
  #isOpen = true
  #isFlushScheduled = false
  #isStreaming = false
  /** Bytes of the last stream that the peer had not drained at its end. */
  #streamTail = 0
  #readTimeoutMs = Infinity
  #lastReceivedAt: number
  /** Pauses that have not ended. */
  #pauses = 0
  #cancelTimeout: Cancel = () => {}

  constructor(options: PeerConnectionOptions) {
    this.#options = options
    const { connection, clock } = options
    this.#lastReceivedAt = clock.monotonic()
    connection.setHandler({
      // One copy for all packets in the chunk. `slice` would not copy where the platform has its own arrays.
      data: (chunk) => this.receive(new Uint8Array(chunk)),
      drain: () => {
        this.#streamTail = 0
        options.queueStats?.taken()
        if (this.#isOpen) options.drained?.()
      },
      closed: (cause) => this.#lose(cause?.message ?? 'closed by the other side'),
    })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Bytes that the peer has not drained. */
  get unsentBytes(): number {
    return this.#out.length + this.#options.connection.bufferedBytes
  }

  /** Sends a packet, in one write with the others of this turn; after a stream if there is one. */
  send(
    type: number,
    zxid: Zxid,
    data: Uint8Array | null = null,
    auth: readonly Identity[] | null = null,
  ): void {
    if (!this.#isOpen) return
    writePacket(this.#out, type, zxid, data, auth)
    this.#onAdded()
  }

  /** Sends a REQUEST packet, as `send`. */
  forward(request: ForwardedRequest): void {
    if (!this.#isOpen) return
    writeForwardedRequest(this.#out, request)
    this.#onAdded()
  }

  #onAdded(): void {
    this.#options.queueStats?.added()
    if (this.#isStreaming) this.#limitUnsent(this.#out.length)
    else this.#scheduleFlush()
  }

  /** Begins a stream after all packets that were sent. */
  beginStream(): void {
    this.flush()
    this.#isStreaming = true
  }

  /** Writes a part of the stream, which belongs to the connection from then on. Returns false when the caller must wait for `drained`. */
  stream(bytes: Uint8Array): boolean {
    return !this.#isOpen || this.#options.connection.write(bytes)
  }

  /** Ends the stream. The packets that are queued behind it follow. */
  endStream(): void {
    this.#isStreaming = false
    this.#streamTail = this.#options.connection.bufferedBytes
    this.#scheduleFlush()
  }

  /** Sends queued packets now. */
  flush(): void {
    if (!this.#isOpen || this.#isStreaming || this.#out.length === 0) return
    const { connection, queueStats } = this.#options
    const isTaken = flushWriter(this.#out, connection)
    queueStats?.flushed(isTaken)
    this.#limitUnsent(connection.bufferedBytes - this.#streamTail)
  }

  /** Fails the connection when the peer is silent for this long. Silence until now counts, but for that during a pause. */
  setReadTimeout(timeoutMs: number): void {
    this.#readTimeoutMs = timeoutMs
    this.#cancelTimeout()
    this.#scheduleTimeout()
  }

  /** When the peer last sent bytes or drained its socket, on the monotonic clock. */
  get lastReceivedAt(): number {
    return this.#lastReceivedAt
  }

  /** Treats a drained socket as a heartbeat of the peer. */
  markAlive(): void {
    this.#lastReceivedAt = this.#options.clock.monotonic()
  }

  /** Whether it does not read. */
  get isPaused(): boolean {
    return this.#pauses > 0
  }

  /** Stops reading until `resume` is called as often. The read timeout does not run meanwhile. */
  pause(): void {
    if (this.#pauses++ > 0) return
    this.#options.connection.pause()
    this.#cancelTimeout()
  }

  resume(): void {
    if (--this.#pauses > 0 || !this.#isOpen) return
    this.#lastReceivedAt = this.#options.clock.monotonic()
    this.#options.connection.resume()
    this.#scheduleTimeout()
  }

  /** Sends queued packets and closes, without calling `lost`. */
  close(): void {
    if (!this.#isOpen) return
    this.flush()
    if (!this.#isOpen) return
    this.#end()
    const { connection, clock } = this.#options
    connection.end()
    clock.after(CLOSE_TIMEOUT_MS, 'last bytes of a quorum connection', () => connection.destroy())
  }

  /** Closes at once and calls `lost` with this reason. */
  fail(reason: string): void {
    if (!this.#isOpen) return
    this.#options.connection.destroy()
    this.#lose(reason)
  }

  /** Takes bytes as if they had just been received: those after a stream. */
  receive(chunk: Uint8Array): void {
    if (!this.#isOpen) return
    this.#lastReceivedAt = this.#options.clock.monotonic()
    this.read(() => this.#options.received(chunk))
  }

  /** Runs an action that processes received bytes. A `ProtocolError` that it throws ends the connection. */
  read(action: () => void): void {
    try {
      action()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.fail(error.message)
    }
  }

  /** Fails the connection when the peer does not drain its packets. The bytes of a stream do not count: the stream waits for the peer. */
  #limitUnsent(packetBytes: number): void {
    if (packetBytes > this.#options.maxUnsentBytes) this.fail(`${this.unsentBytes} bytes are not read by it`)
  }

  #scheduleFlush(): void {
    if (this.#out.length >= FLUSH_BYTES) return this.flush()
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    this.#options.clock.immediate(() => {
      this.#isFlushScheduled = false
      this.flush()
    })
  }

  #scheduleTimeout(): void {
    if (!this.#isOpen || this.isPaused || this.#readTimeoutMs === Infinity) return
    const { clock } = this.#options
    const wait = this.#lastReceivedAt + this.#readTimeoutMs - clock.monotonic()
    this.#cancelTimeout = clock.after(wait, 'silence of a quorum connection', () => {
      // After a long turn of this process there may be bytes that are not read yet.
      if (this.#silentForMs() >= this.#readTimeoutMs) clock.immediate(() => this.#onTimeout())
      else this.#scheduleTimeout()
    })
  }

  #onTimeout(): void {
    if (this.#silentForMs() >= this.#readTimeoutMs) this.fail(`it sent nothing for ${this.#readTimeoutMs} ms`)
    else this.#scheduleTimeout()
  }

  #silentForMs(): number {
    return this.#options.clock.monotonic() - this.#lastReceivedAt
  }

  #lose(reason: string): void {
    if (!this.#isOpen) return
    this.#end()
    this.#options.lost(reason)
  }

  #end(): void {
    this.#isOpen = false
    this.#cancelTimeout()
  }
}
