import type { Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import type { ServerStats } from './stats.ts'

/** A connection with more unsent bytes is closed: the client requests more than it reads. */
export const UNSENT_LIMIT = 64 * 2 ** 20
/** A connection whose queued requests take more bytes is not read until the queue is shorter. */
export const BACKLOG_LIMIT = 1 << 20
/** Milliseconds that a client has to read its last bytes. */
export const LINGER_MS = 10_000

/**
 * Reasons to stop reading a connection: its own queue is too long, the server is overloaded, its handshake is pending, what it has
 * sent waits for a later turn, or the server stops.
 */
export const PauseReason = { backlog: 1, overload: 2, session: 4, turn: 8, stop: 16 } as const
export type PauseReason = (typeof PauseReason)[keyof typeof PauseReason]

/** Writes the bytes to one client, and reads from it while no reason to pause holds. */
export class FlowControl {
  readonly #wire: Connection
  /** The reasons that hold, as bits. */
  #reasons = 0
  /** Whether the socket applies backpressure. The connection is still read, so that its pings are processed. */
  isBackpressured = false

  constructor(wire: Connection) {
    this.#wire = wire
  }

  /** Bytes that are written and not yet taken by the socket. */
  get unsentBytes(): number {
    return this.#wire.bufferedBytes
  }

  /** Memory of bytes that the socket holds until it can deliver them. */
  get heldBytes(): number {
    return this.#wire.heldBytes ?? 0
  }

  send(bytes: Uint8Array): void {
    if (!this.#wire.write(bytes)) this.isBackpressured = true
  }

  /** Sends the bytes of a writer and empties it. */
  flushWriter(writer: Writer): void {
    if (!flushWriter(writer, this.#wire)) this.isBackpressured = true
  }

  isPausedFor(reason: PauseReason): boolean {
    return (this.#reasons & reason) !== 0
  }

  pause(reason: PauseReason): void {
    if (this.#reasons === 0) this.#wire.pause()
    this.#reasons |= reason
  }

  /** Removes a reason; reads again when it was the last one. */
  resume(reason: PauseReason): void {
    if ((this.#reasons & reason) === 0) return
    this.#reasons &= ~reason
    if (this.#reasons === 0) this.#wire.resume()
  }

  /** Ends the connection after the bytes that are written. Reads on, which is the only way to see the end of the client's side. */
  end(): void {
    this.#reasons = 0
    this.#wire.resume()
    this.#wire.end()
  }

  destroy(): void {
    this.#wire.destroy()
  }
}

/**
 * Writes the bytes of a writer to a connection and empties the writer, which keeps its array when the connection has copied the
 * bytes. Returns false for backpressure, as `Connection.write` does.
 */
export function flushWriter(writer: Writer, wire: Connection): boolean {
  const hasRoom = wire.write(writer.bytes())
  if (wire.canReuseBuffers === true) writer.release()
  else writer.take()
  return hasRoom
}

/** A connection that the throttler can stop reading. */
export interface ThrottledChannel {
  readonly flow: FlowControl
}

/** Stops reading the connections of writing clients while too many writes are in flight (`globalOutstandingLimit`). */
export class RequestThrottler {
  readonly #outstanding: () => number
  readonly #limit: () => number
  readonly #stats: ServerStats
  readonly #throttled = new Set<ThrottledChannel>()

  /** `outstanding` returns the writes in flight, `limit` how many of them are allowed now. */
  constructor(outstanding: () => number, limit: () => number, stats: ServerStats) {
    this.#outstanding = outstanding
    this.#limit = limit
    this.#stats = stats
  }

  /** Stops reading a connection, if the server is overloaded, until `release` finds that it is not. */
  throttle(channel: ThrottledChannel): void {
    if (!this.#isOverloaded()) return
    this.#stats.requestsThrottled++
    this.#throttled.add(channel)
    channel.flow.pause(PauseReason.overload)
  }

  /** Reads the throttled connections again, unless the server is still overloaded. */
  release(): void {
    if (this.#throttled.size === 0 || this.#isOverloaded()) return
    for (const channel of this.#throttled) channel.flow.resume(PauseReason.overload)
    this.#throttled.clear()
  }

  /** Connections that are not read. */
  get size(): number {
    return this.#throttled.size
  }

  remove(channel: ThrottledChannel): void {
    this.#throttled.delete(channel)
  }

  #isOverloaded(): boolean {
    return this.#outstanding() > this.#limit()
  }
}
