import { ProtocolError, BufferPool, Writer } from '@zabra/protocol'
import type { Cancel, Clock, Connection } from '@zabra/runtime'
import type { Identity, Zxid } from '../core/types.ts'
import { writePacket } from '../core/zab/index.ts'
import { flushWriter } from '../connections/flow-control.ts'

/** What a connection of the quorum port is made of, on either side. */
export interface PeerConnectionOptions {
  readonly connection: Connection
  readonly clock: Clock
  /** Bytes that may wait for the other side to take them; with more it is given up. */
  readonly maxUnsentBytes: number
  /** Bytes came, in an array that nobody else has. A `ProtocolError` out of it ends the connection. */
  readonly received: (chunk: Uint8Array) => void
  /** There is room for more of a stream. */
  readonly drained?: () => void
  /** It is gone, for this reason. Comes once, and not after `close`. */
  readonly lost: (reason: string) => void
}

/** How long what was sent last may take to go out after `close`, in milliseconds. */
const LAST_BYTES_MS = 1000
/** So much is sent at once; less waits for what else the input that is ready now brings about. */
const ENOUGH_BYTES = 65536

/**
 * A connection between a leader and a learner: packets are collected while input is ready and leave in one write, what waits
 * is bounded, and silence ends it. A stream (a snapshot) goes between two packets; packets that come meanwhile wait behind it.
 */
export class PeerConnection {
  readonly #options: PeerConnectionOptions
  readonly #out = new Writer(4096, new BufferPool())
  #open = true
  #scheduled = false
  #streaming = false
  #patienceMs = Infinity
  #heardAt: number
  #cancelPatience: Cancel = () => {}

  constructor(options: PeerConnectionOptions) {
    this.#options = options
    const { connection: wire, clock } = options
    this.#heardAt = clock.monotonic()
    wire.setHandler({
      // One copy for all packets in it. `slice` would not be one where the platform has arrays of its own.
      data: (chunk) => this.receive(new Uint8Array(chunk)),
      drain: () => {
        if (this.#open) options.drained?.()
      },
      closed: (cause) => this.#lose(cause?.message ?? 'closed by the other side'),
    })
  }

  get isOpen(): boolean {
    return this.#open
  }

  /** Bytes that the other side has not taken yet. */
  get unsentBytes(): number {
    return this.#out.length + this.#options.connection.bufferedBytes
  }

  /** Sends a packet with what else is sent about now, behind a stream that is on its way. */
  send(
    type: number,
    zxid: Zxid,
    data: Uint8Array | null = null,
    auth: readonly Identity[] | null = null,
  ): void {
    this.write((out) => writePacket(out, type, zxid, data, auth))
  }

  /** The same with a packet that the caller pipeline. */
  write(packet: (out: Writer) => void): void {
    if (!this.#open) return
    packet(this.#out)
    if (this.unsentBytes > this.#options.maxUnsentBytes)
      return this.fail(`${this.unsentBytes} bytes wait for it to take them`)
    this.#schedule()
  }

  /** Begins a stream behind everything that was sent. */
  beginStream(): void {
    this.flush()
    this.#streaming = true
  }

  /** Writes a part of the stream, which the connection owns from then on. False asks to wait for `drained`. */
  stream(bytes: Uint8Array): boolean {
    return !this.#open || this.#options.connection.write(bytes)
  }

  /** Ends the stream; packets that waited behind it follow. */
  endStream(): void {
    this.#streaming = false
    this.#schedule()
  }

  /** Sends what is collected, now. */
  flush(): void {
    if (!this.#open || this.#streaming || this.#out.length === 0) return
    flushWriter(this.#out, this.#options.connection)
  }

  /** From now on the other side may be silent for this long. The time that it has been silent for counts. */
  setReadTimeout(withinMs: number): void {
    this.#patienceMs = withinMs
    this.#cancelPatience()
    this.#watch()
  }

  /** When the other side showed last that it lives, on the monotonic clock. */
  get lastReceivedAt(): number {
    return this.#heardAt
  }

  /** It takes what it is sent, so it lives. */
  markAlive(): void {
    this.#heardAt = this.#options.clock.monotonic()
  }

  /** Stops and restarts the flow of bytes to `took`. While it stands nobody is expected to speak. */
  pause(): void {
    this.#options.connection.pause()
    this.#cancelPatience()
  }

  resume(): void {
    if (!this.#open) return
    this.#heardAt = this.#options.clock.monotonic()
    this.#options.connection.resume()
    this.#watch()
  }

  /** Sends what is collected and closes; `lost` does not follow. */
  close(): void {
    if (!this.#open) return
    this.flush()
    if (!this.#open) return
    this.#end()
    const { connection: wire, clock } = this.#options
    wire.end()
    clock.after(LAST_BYTES_MS, 'last bytes of a quorum connection', () => wire.destroy())
  }

  /** Gives the other side up: closes at once and tells the owner why. */
  fail(reason: string): void {
    if (!this.#open) return
    this.#options.connection.destroy()
    this.#lose(reason)
  }

  /** Takes bytes as if they had just come: those behind something that is no packet. */
  receive(chunk: Uint8Array): void {
    if (!this.#open) return
    this.#heardAt = this.#options.clock.monotonic()
    try {
      this.#options.received(chunk)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.fail(error.message)
    }
  }

  #schedule(): void {
    if (this.#streaming) return
    if (this.#out.length >= ENOUGH_BYTES) return this.flush()
    if (this.#scheduled) return
    this.#scheduled = true
    this.#options.clock.immediate(() => {
      this.#scheduled = false
      this.flush()
    })
  }

  #watch(): void {
    if (!this.#open || this.#patienceMs === Infinity) return
    const { clock } = this.#options
    const wait = this.#heardAt + this.#patienceMs - clock.monotonic()
    this.#cancelPatience = clock.after(wait, 'silence of a quorum connection', () => {
      // After a long turn of our own there may be bytes that nobody has had time to read.
      if (this.#silentFor() >= this.#patienceMs) clock.immediate(() => this.#judge())
      else this.#watch()
    })
  }

  #judge(): void {
    if (this.#silentFor() >= this.#patienceMs) this.fail(`nothing came from it for ${this.#patienceMs} ms`)
    else this.#watch()
  }

  #silentFor(): number {
    return this.#options.clock.monotonic() - this.#heardAt
  }

  #lose(reason: string): void {
    if (!this.#open) return
    this.#end()
    this.#options.lost(reason)
  }

  #end(): void {
    this.#open = false
    this.#cancelPatience()
  }
}
