import { FrameSplitter, ProtocolError } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'

/** Longest message that is taken, as in Apache ZooKeeper. */
export const MAX_MESSAGE_BYTES = 512 * 1024

/** What a link tells its owner. */
export interface ElectionConnectionEvents {
  /** A message came; the bytes are a view for the length of the call. */
  received(payload: Uint8Array): void
  /** There is room to write again. */
  drained(): void
  /** It is gone, for this reason. Comes once, and not after `close`. */
  lost(reason: string): void
}

/** A connection to a server that has said who it is, or that we have dialed: messages both ways. */
export class ElectionConnection {
  readonly #wire: Connection
  readonly #events: ElectionConnectionEvents
  readonly #splitter: FrameSplitter
  #open = true
  #blocked = false
  /** Whether anything came. */
  hasReceived = false

  constructor(wire: Connection, events: ElectionConnectionEvents) {
    this.#wire = wire
    this.#events = events
    this.#splitter = new FrameSplitter({
      minLength: 1,
      maxLength: MAX_MESSAGE_BYTES,
      frame: (bytes, start, end) => {
        this.hasReceived = true
        events.received(bytes.subarray(start, end))
      },
    })
    wire.setHandler({
      data: (chunk) => this.receive(chunk),
      drain: () => this.#drained(),
      closed: (cause) => this.#lose(cause?.message ?? 'closed by the other side'),
    })
  }

  /** Whether a message can be written now; otherwise `drained` tells when. */
  get writable(): boolean {
    return this.#open && !this.#blocked
  }

  /** Takes bytes of the stream, those behind a hello first. */
  receive(chunk: Uint8Array): void {
    if (!this.#open) return
    try {
      this.#splitter.push(chunk)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#lose(error.message)
      this.#wire.destroy()
    }
  }

  write(payload: Uint8Array): void {
    const frame = new Uint8Array(4 + payload.length)
    new DataView(frame.buffer).setInt32(0, payload.length)
    frame.set(payload, 4)
    this.#blocked = !this.#wire.write(frame)
  }

  /** Closes at once; `lost` does not follow. */
  close(): void {
    this.#open = false
    this.#splitter.stop()
    this.#wire.destroy()
  }

  #drained(): void {
    this.#blocked = false
    if (this.#open) this.#events.drained()
  }

  #lose(reason: string): void {
    if (!this.#open) return
    this.#open = false
    this.#splitter.stop()
    this.#events.lost(reason)
  }
}
