import type { Address, Connection, ConnectionHandler } from '@zabra/runtime'

/** Length in bytes from which a request probably is a write. */
const LONG = 100

/** A connection that can lose the reply to its next long request, and breaks with it. */
export class LossyConnection implements Connection {
  readonly remote: Address
  readonly local: Address
  readonly #inner: Connection
  readonly #isArmed: () => boolean
  #losing = false

  /** `isArmed` returns whether the next long request loses its reply, and disarms the fault. */
  constructor(inner: Connection, isArmed: () => boolean) {
    this.#inner = inner
    this.#isArmed = isArmed
    this.remote = inner.remote
    this.local = inner.local
  }

  get bufferedBytes(): number {
    return this.#inner.bufferedBytes
  }

  setHandler(events: ConnectionHandler): void {
    this.#inner.setHandler({
      data: (chunk) => {
        if (this.#losing) this.#inner.destroy(new Error('The answer was lost'))
        else events.data(chunk)
      },
      drain: () => events.drain(),
      closed: (cause) => events.closed(cause),
    })
  }

  write(bytes: Uint8Array): boolean {
    this.#losing ||= bytes.length > LONG && this.#isArmed()
    return this.#inner.write(bytes)
  }

  pause(): void {
    this.#inner.pause()
  }

  resume(): void {
    this.#inner.resume()
  }

  end(): void {
    this.#inner.end()
  }

  destroy(cause?: Error): void {
    this.#inner.destroy(cause)
  }
}
