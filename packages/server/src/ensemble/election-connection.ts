import { FrameSplitter, ProtocolError } from '@zabra/protocol'
import type { Address, Clock, Connection } from '@zabra/runtime'
import { MAX_UNKNOWN_SERVERS } from './quorum-port.ts'
import { ReadScheduler } from './read-scheduler.ts'

/** Milliseconds of one turn of the event loop for the votes of one connection. */
const TURN_MS = 2
/** The same for a server that no configuration names: all of them together have as much as one member. */
const UNKNOWN_TURN_MS = TURN_MS / MAX_UNKNOWN_SERVERS

/** The longest message that is accepted, as in Apache ZooKeeper. */
export const MAX_MESSAGE_BYTES = 512 * 1024

/** Receives the events of an election connection. */
export interface ElectionConnectionEvents {
  /** Whether a configuration names the other server. */
  isNamed(): boolean
  /** A message has arrived. The bytes are a view that is valid during the call. */
  received(payload: Uint8Array): void
  /** Messages can be written again. */
  drained(): void
  /** The connection is lost. Called once, and not after `close`. */
  lost(reason: string): void
}

/** A connection for votes to an identified server: messages with a length prefix in both directions. */
export class ElectionConnection {
  readonly #connection: Connection
  readonly #events: ElectionConnectionEvents
  readonly #splitter: FrameSplitter
  #isOpen = true
  #isBlocked = false
  /** Whether any message has arrived. */
  hasReceived = false
  /** Whether the other server has proved its id. */
  isAuthenticated = false

  constructor(connection: Connection, clock: Clock, events: ElectionConnectionEvents) {
    this.#connection = connection
    this.#events = events
    this.#splitter = new FrameSplitter({
      minLength: 1,
      maxLength: MAX_MESSAGE_BYTES,
      frame: (bytes, start, end) => {
        this.hasReceived = true
        events.received(bytes.subarray(start, end))
        reads.count(end - start)
      },
    })
    const reads = new ReadScheduler(
      clock,
      () => (this.isAuthenticated || events.isNamed() ? TURN_MS : UNKNOWN_TURN_MS),
      {
        pause: () => {
          this.#splitter.pause()
          connection.pause()
        },
        resume: () => {
          if (!this.#isOpen) return
          connection.resume()
          this.#read(() => this.#splitter.resume())
        },
      },
    )
    connection.setHandler({
      data: (chunk) => this.receive(chunk),
      drain: () => this.#onDrain(),
      closed: (cause) => this.#lose(cause?.message ?? 'closed by the other side'),
    })
  }

  get remote(): Address {
    return this.#connection.remote
  }

  /** Whether a message can be written now; `drained` is called when it can again. */
  get isWritable(): boolean {
    return this.#isOpen && !this.#isBlocked
  }

  /** Takes bytes of the stream; first of all those after a hello. */
  receive(chunk: Uint8Array): void {
    if (this.#isOpen) this.#read(() => this.#splitter.push(chunk))
  }

  #read(action: () => void): void {
    try {
      action()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#lose(error.message)
      this.#connection.destroy()
    }
  }

  write(payload: Uint8Array): void {
    this.#isBlocked = !this.#connection.write(frameOf(payload))
  }

  /** Closes at once, without calling `lost`. */
  close(): void {
    this.#isOpen = false
    this.#splitter.stop()
    this.#connection.destroy()
  }

  #onDrain(): void {
    this.#isBlocked = false
    if (this.#isOpen) this.#events.drained()
  }

  #lose(reason: string): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#splitter.stop()
    this.#events.lost(reason)
  }
}

/** Returns a message with its length before it. */
export function frameOf(payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(4 + payload.length)
  new DataView(frame.buffer).setInt32(0, payload.length)
  frame.set(payload, 4)
  return frame
}
