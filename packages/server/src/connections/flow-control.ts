import type { Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { flushWriter } from './flush-writer.ts'

/** Bytes that wait for a client before it is cut off: it asks for more than it reads. */
export const UNSENT_LIMIT = 64 * 2 ** 20
/** Bytes of requests of one client that wait for others, before it is not read any more. */
export const BACKLOG_LIMIT = 1 << 20
/** How long a client may take to read the last bytes that it gets, in milliseconds. */
export const LINGER_MS = 10_000

/** Why a client is not read for now: too much of it waits, the server has too much to do, its session is on its way. */
export const PauseReason = { backlog: 1, overload: 2, session: 4 } as const
type Hindrance = (typeof PauseReason)[keyof typeof PauseReason]

/** Bytes out to one client, and reading from it only while nothing hinders. */
export class FlowControl {
  readonly #wire: Connection
  #hindrances = 0
  /** Whether the client takes its bytes more slowly than they come. It is read on, so that its pings are seen. */
  isBackpressured = false

  constructor(wire: Connection) {
    this.#wire = wire
  }

  /** Bytes that the client has not taken yet. */
  get unsentBytes(): number {
    return this.#wire.bufferedBytes
  }

  send(bytes: Uint8Array): void {
    if (!this.#wire.write(bytes)) this.isBackpressured = true
  }

  /** Sends what a writer has, which is empty then. */
  flushWriter(writer: Writer): void {
    if (!flushWriter(writer, this.#wire)) this.isBackpressured = true
  }

  isPausedFor(by: Hindrance): boolean {
    return (this.#hindrances & by) !== 0
  }

  pause(by: Hindrance): void {
    if (this.#hindrances === 0) this.#wire.pause()
    this.#hindrances |= by
  }

  resume(by: Hindrance): void {
    if ((this.#hindrances & by) === 0) return
    this.#hindrances &= ~by
    if (this.#hindrances === 0) this.#wire.resume()
  }

  /** Closes once everything is sent. Reads on until then, so that the end of the other side is seen. */
  end(): void {
    this.#hindrances = 0
    this.#wire.resume()
    this.#wire.end()
  }

  destroy(): void {
    this.#wire.destroy()
  }
}
