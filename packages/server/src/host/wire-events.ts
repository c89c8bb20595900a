import type { ConnectionEvents } from '@zabra/runtime'
import type { ClientConnection } from './connection.ts'
import type { ServerCore } from './core.ts'

/** What the wire of a client tells, each in a turn of its own. */
export class WireEvents implements ConnectionEvents {
  readonly #core: ServerCore
  readonly #client: ClientConnection

  constructor(core: ServerCore, client: ClientConnection) {
    this.#core = core
    this.#client = client
  }

  data(chunk: Uint8Array): void {
    this.#core.turn(() => this.#client.read(chunk))
  }

  drain(): void {
    this.#core.turn(() => this.#client.drained())
  }

  /** A word may still be on its way to its answer; whoever has a session and ends it so gets none. */
  ended(): boolean {
    return this.#client.isClosing
  }

  closed(cause?: Error): void {
    this.#core.turn(() => this.#client.gone(cause?.message))
  }
}
