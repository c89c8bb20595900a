import type { ConnectionHandler } from '@zabra/runtime'
import type { ClientConnection } from './client-connection.ts'
import type { ClientService } from './client-service.ts'

/** What the wire of a client tells, each in a turn of its own. */
export class ClientConnectionHandler implements ConnectionHandler {
  readonly #core: ClientService
  readonly #client: ClientConnection

  constructor(core: ClientService, client: ClientConnection) {
    this.#core = core
    this.#client = client
  }

  data(chunk: Uint8Array): void {
    this.#core.runTurn(() => this.#client.onData(chunk))
  }

  drain(): void {
    this.#core.runTurn(() => this.#client.onDrain())
  }

  /** A word may still be on its way to its answer; whoever has a session and ends it so gets none. */
  ended(): boolean {
    return this.#client.isClosing
  }

  closed(cause?: Error): void {
    this.#core.runTurn(() => this.#client.onClosed(cause?.message))
  }
}
