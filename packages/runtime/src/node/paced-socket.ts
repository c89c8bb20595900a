import type { Socket } from 'node:net'
import { TurnQueue, type Step } from './turn-queue.ts'
import { WrappedSocket } from './wrapped-socket.ts'

/** Bytes that are passed on at once: 340 chunks of HTTP or frames of WebSockets, with a byte each. */
export const SLICE_BYTES = 2048
/** A slice of requests has at least so many bytes, if there are as many: a few requests without headers. */
const LEAST_SLICE_BYTES = 128
/** Milliseconds of one turn of the event loop for what all paced sockets have received. */
const TURN_MS = 2

/**
 * Sockets of which the end, or the failure, is passed on in one turn: what their readers do then takes 0.1 ms for a WebSocket, most of
 * it after the step. Five hundred that a proxy closed at once took 56 ms.
 */
export const ENDS_PER_TURN = 16

/** Passes on slices of sockets, and opens them. */
const slices = new TurnQueue(TURN_MS)
/** Passes on their ends. */
const ends = new TurnQueue(TURN_MS, ENDS_PER_TURN)

/**
 * Passes on what a socket receives in slices that share the time of a turn with those of other sockets. Node reads 64 KiB at once, and
 * a parser of small parts splits all of it in the same turn: ten thousand chunks of HTTP took 50 ms, frames of WebSockets 20.
 */
export class PacedSocket extends WrappedSocket {
  /** Returns true while the end of the peer must wait for `passEnd`, although all before it was read. */
  holdsEnd: (() => boolean) | undefined
  /**
   * Whether slices end with blank lines, as the headers of requests do. Each request in a slice costs its parser some 40 µs, even where
   * the connection is destroyed for the second one.
   */
  hasRequests = false
  /** Whether the reader has asked for bytes, and none were there. */
  #awaitsBytes = false
  /** Why the socket has failed. */
  #failure: Error | undefined

  /** Passes on a slice, which the reader reads in this call if it is not paused. */
  readonly #passSlice: Step = () => {
    if (this.destroyed) return
    const { source } = this
    const slice = source.read(Math.min(source.readableLength, SLICE_BYTES) || undefined) as Buffer | null
    if (slice === null) this.#awaitsBytes = true
    else this.push(this.hasRequests ? this.#upToBlankLine(slice) : slice)
  }

  readonly #passInTurn: Step = () => slices.run(this.#passSlice)

  /** Puts what follows the first blank line back into the socket. */
  #upToBlankLine(slice: Buffer): Buffer {
    const end = endOfBlankLine(slice)
    if (end === slice.length) return slice
    this.source.unshift(slice.subarray(end))
    return slice.subarray(0, end)
  }

  /** Passes on the end of the peer, if it has come. */
  readonly passEnd = (): void => {
    if (this.destroyed || !this.source.readableEnded) return
    if (this.holdsEnd === undefined) this.push(null)
    // The bytes before it may complete a request, until whose response the end must wait.
    else if (this.readableLength > 0) this.once('data', this.passEnd)
    else if (!this.holdsEnd()) this.push(null)
  }

  constructor(source: Socket) {
    super(source, SLICE_BYTES)
    source.on('readable', () => {
      if (!this.#awaitsBytes) return
      this.#awaitsBytes = false
      slices.run(this.#passSlice)
    })
    source.on('end', () => ends.runLater(this.passEnd))
    source.on('timeout', () => this.emit('timeout'))
  }

  /** Emits `timeout` after a time without traffic. */
  setTimeout(ms: number): this {
    this.source.setTimeout(ms)
    return this
  }

  /** Closes the socket once everything is written. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  override _read(): void {
    // What is pushed during this call is read later in the turn, beside the count of its time.
    if (this.source.readableLength > 0) process.nextTick(this.#passInTurn)
    else {
      this.#awaitsBytes = true
      // Has the socket emit its end if it has come.
      this.source.read(0)
    }
  }

  protected override lost(error?: Error): void {
    if (this.destroyed) return
    this.#failure ??= error
    ends.runLater(this.#passLoss)
  }

  readonly #passLoss: Step = () => void this.destroy(this.#failure)

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    slices.drop(this.#passSlice)
    ends.drop(this.passEnd)
    ends.drop(this.#passLoss)
    // A write may have failed because the socket has, whose failure says why.
    super._destroy(error && (this.#failure ?? error), done)
  }
}

/** Returns where the first blank line ends at which a slice may end, which is the end of the slice where there is none. */
function endOfBlankLine(slice: Buffer): number {
  for (let at = LEAST_SLICE_BYTES; at + 1 < slice.length; at++) {
    if (slice[at] !== LF) continue
    if (slice[at + 1] === LF) return at + 2
    if (slice[at + 1] === CR && slice[at + 2] === LF) return at + 3
  }
  return slice.length
}

const LF = 0x0a
const CR = 0x0d

/** Passes an accepted socket, which will send requests of HTTP, to a server: in this turn if there is time, else in a later one. */
export function openPaced(source: Socket, open: (socket: PacedSocket) => void): void {
  const socket = new PacedSocket(source)
  socket.hasRequests = true
  slices.run(() => {
    if (!socket.destroyed) open(socket)
  })
}
