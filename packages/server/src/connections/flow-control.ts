import type { Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import type { Histogram } from '../core/histogram.ts'
import type { PieceWriter } from '../core/piece-writer.ts'
import type { Session } from '../core/sessions/index.ts'
import { ITEMS_PER_TURN } from '../core/in-slices.ts'
import type { ServerStats } from './stats.ts'

/** A connection with more unsent bytes is closed: the client requests more than it reads. */
export const UNSENT_LIMIT = 64 * 2 ** 20
/** A connection whose queued requests take more bytes is not read until the queue is shorter. */
export const BACKLOG_LIMIT = 1 << 20
/** Milliseconds that a client has to read its last bytes. */
export const LINGER_MS = 10_000

/**
 * Reasons to stop reading a connection: its own queue is too long, the server is overloaded, its handshake is pending, what it has
 * sent waits for a later turn, the server stops, or it waits for its turn to receive the rest of a request.
 */
export const PauseReason = { backlog: 1, overload: 2, session: 4, turn: 8, stop: 16, receive: 32 } as const
export type PauseReason = (typeof PauseReason)[keyof typeof PauseReason]
/** The reasons to pause that are those of this server. */
const WAITS_FOR_SERVER = PauseReason.overload | PauseReason.turn | PauseReason.receive

/**
 * Bytes that a connection hands to its socket at once. The system copies what fits into the buffer of the socket, up to some MiB, and
 * the platform does so again for every socket with room in one iteration of the event loop.
 */
const WRITE_BYTES = 1 << 18

export interface FlowControlOptions {
  /** Runs steps in later turns. */
  readonly sends: { add(step: () => boolean): void }
  /** Called after a step that has handed bytes to the socket. */
  readonly onSent: () => void
  /** Gets the bytes that are not sent, each time that the socket takes no more. */
  readonly unsent?: Histogram
}

/** Writes the bytes to one client, and reads from it while no reason to pause holds. */
export class FlowControl {
  readonly #wire: Connection
  readonly #options: FlowControlOptions
  /** The reasons that hold, as bits. */
  #reasons = 0
  /** What the socket gets in later turns, in this order. */
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  /** What the socket got before of the array of which it got the last part, and of the one that waits with a part. */
  #sentOfLast = 0
  #sentOfNext = 0
  #isEnding = false
  /** Whether bytes wait here or in the socket. The connection is still read, so that its pings are processed. */
  isBackpressured = false

  constructor(wire: Connection, options: FlowControlOptions) {
    this.#wire = wire
    this.#options = options
  }

  /** Bytes that are written and not yet taken by the socket. */
  get unsentBytes(): number {
    return this.#wire.bufferedBytes + this.#waitingBytes
  }

  /** Memory of bytes that the socket has received and holds until it can deliver them. */
  get heldBytes(): number {
    return this.#wire.heldBytes ?? 0
  }

  /**
   * Memory of sent bytes: an array stays until its last part is sent. A client could otherwise leave the last bytes of many long replies
   * unread.
   */
  get sentBytesHeld(): number {
    return this.#sentOfNext + (this.#wire.bufferedBytes > 0 ? this.#sentOfLast : 0)
  }

  /** Sends bytes that are not written again. */
  send(bytes: Uint8Array): void {
    this.#send([bytes])
  }

  /** Sends the bytes of a writer and empties it. */
  flushWriter(writer: PieceWriter): void {
    this.#forgetSent()
    if (this.#waiting.length > 0 || writer.hasAttachments || writer.length > WRITE_BYTES)
      this.#send(writer.takePieces())
    else if (!flushWriter(writer, this.#wire)) {
      this.isBackpressured = true
      this.#options.unsent?.add(this.unsentBytes)
    }
  }

  /** Goes on after the socket has sent its bytes. Returns whether none are left. */
  drained(): boolean {
    this.#forgetSent()
    this.isBackpressured = this.#waiting.length > 0
    if (this.isBackpressured) this.#options.sends.add(this.#step)
    return !this.isBackpressured
  }

  /** Counts a sent array no more once the socket has sent its last part. */
  #forgetSent(): void {
    if (this.#sentOfLast > 0 && this.#wire.bufferedBytes === 0) this.#sentOfLast = 0
  }

  #send(pieces: readonly Uint8Array[]): void {
    const isFirst = this.#waiting.length === 0 && !this.isBackpressured
    for (const piece of pieces) {
      this.#waiting.push(piece)
      this.#waitingBytes += piece.length
    }
    if (isFirst && this.#sendSome()) this.#options.sends.add(this.#step)
    if (this.#waiting.length > 0) this.isBackpressured = true
  }

  readonly #step = (): boolean => {
    // The socket may have been full when an earlier step ended, and it reports when it is not.
    if (this.#waiting.length === 0) return false
    const hasMore = this.#sendSome()
    if (this.#waiting.length === 0 && this.#isEnding) this.#wire.end()
    this.#options.onSent()
    return hasMore
  }

  /** Hands some bytes to the socket. Returns whether it would take more now. */
  #sendSome(): boolean {
    this.#forgetSent()
    let room = WRITE_BYTES
    let sent = 0
    let hasRoom = true
    for (; hasRoom && room > 0 && sent < this.#waiting.length; sent++) {
      const piece = this.#waiting[sent]!
      const part = piece.length > room ? piece.subarray(0, room) : piece
      hasRoom = this.#wire.write(part)
      room -= part.length
      this.#waitingBytes -= part.length
      if (part !== piece) {
        this.#sentOfNext += part.length
        this.#waiting[sent] = piece.subarray(part.length)
        break
      }
      if (this.#sentOfNext > 0) this.#sentOfLast = this.#sentOfNext
      this.#sentOfNext = 0
    }
    this.#waiting.splice(0, sent)
    this.isBackpressured = !hasRoom || this.#waiting.length > 0
    if (!hasRoom) this.#options.unsent?.add(this.unsentBytes)
    return hasRoom && this.#waiting.length > 0
  }

  isPausedFor(reason: PauseReason): boolean {
    return (this.#reasons & reason) !== 0
  }

  /** Whether pings wait in the socket for this server: it is overloaded, or has not processed what came before them. */
  get isThrottled(): boolean {
    if ((this.#reasons & WAITS_FOR_SERVER) !== 0) return true
    // A client that does not read its replies may be gone.
    return this.isPausedFor(PauseReason.backlog) && !this.isBackpressured
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
    this.#isEnding = true
    if (this.#waiting.length === 0) this.#wire.end()
  }

  destroy(): void {
    this.#waiting = []
    this.#waitingBytes = this.#sentOfLast = this.#sentOfNext = 0
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
  readonly session: Session | undefined
}

export interface RequestThrottlerOptions {
  /** Returns the writes in flight. */
  readonly outstanding: () => number
  /** Returns how many of them are allowed now. */
  readonly limit: () => number
  readonly stats: Pick<ServerStats, 'requestsThrottled' | 'throttledTime'>
  /** Returns when the current turn began, on the monotonic clock. */
  readonly now: () => number
  /** Runs a function in a later turn, each of which ends with a `release`. */
  readonly runLater: (action: () => void) => void
}

/** Stops reading the connections of writing clients while too many writes are in flight (`globalOutstandingLimit`). */
export class RequestThrottler {
  readonly #options: RequestThrottlerOptions
  /** In the order in which they were throttled, with the time of that. */
  readonly #throttled = new Map<ThrottledChannel, number>()
  /** Whether a later turn releases more. */
  #isReleasing = false

  constructor(options: RequestThrottlerOptions) {
    this.#options = options
  }

  /** Stops reading a connection, if the server is overloaded, until `release` finds that it is not. */
  throttle(channel: ThrottledChannel): void {
    if (!this.#isOverloaded()) return
    this.#options.stats.requestsThrottled++
    if (!this.#throttled.has(channel)) this.#throttled.set(channel, this.#options.now())
    channel.flow.pause(PauseReason.overload)
  }

  /** Reads throttled connections again, some in each turn, the first ones first, unless the server is still overloaded. */
  release(): void {
    if (this.#throttled.size === 0 || this.#isReleasing || this.#isOverloaded()) return
    const { stats, now, runLater } = this.#options
    const [first] = this.#throttled.values()
    stats.throttledTime.add(now() - first!)
    let left = ITEMS_PER_TURN
    for (const channel of this.#throttled.keys()) {
      if (left-- === 0) break
      this.#throttled.delete(channel)
      channel.flow.resume(PauseReason.overload)
    }
    if (this.#throttled.size === 0) return
    this.#isReleasing = true
    runLater(() => (this.#isReleasing = false))
  }

  /** The connections that are not read: their pings wait in the sockets. */
  get channels(): Iterable<ThrottledChannel> {
    return this.#throttled.keys()
  }

  get size(): number {
    return this.#throttled.size
  }

  remove(channel: ThrottledChannel): void {
    this.#throttled.delete(channel)
  }

  #isOverloaded(): boolean {
    return this.#options.outstanding() > this.#options.limit()
  }
}
