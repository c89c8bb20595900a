import type { Connection, ConnectionHandler } from '@zabra/runtime'
import { ForwardingConnection } from '@zabra/testkit'

/** Length in bytes from which a request probably is a write. */
const LONG = 100

/** A connection that can lose the reply to its next long request, and breaks with it. */
export class LossyConnection extends ForwardingConnection {
  readonly #isArmed: () => boolean
  #losing = false

  /** `isArmed` returns whether the next long request loses its reply, and disarms the fault. */
  constructor(inner: Connection, isArmed: () => boolean) {
    super(inner)
    this.#isArmed = isArmed
  }

  override setHandler(events: ConnectionHandler): void {
    this.inner.setHandler({
      data: (chunk) => {
        if (this.#losing) this.inner.destroy(new Error('The answer was lost'))
        else events.data(chunk)
      },
      drain: () => events.drain(),
      closed: (cause) => events.closed(cause),
    })
  }

  override write(bytes: Uint8Array): boolean {
    this.#losing ||= bytes.length > LONG && this.#isArmed()
    return this.inner.write(bytes)
  }
}
