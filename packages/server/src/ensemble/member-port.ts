import {
  NetworkError,
  type Address,
  type Cancel,
  type Connection,
  type Listener,
  type Network,
} from '@zabra/runtime'
import type { ListenAddress } from './membership.ts'
import { PendingConnections, type PendingConnectionsOptions, type Refusal } from './pending-connections.ts'

export interface MemberPortOptions<T> extends PendingConnectionsOptions<T> {
  readonly network: Network
  /** How often binding is tried, one second apart; 0 without end. */
  readonly bindAttempts: number
}

const RETRY_MS = 1000

/** A port for other members, whose connections identify themselves first. Binds it, and tries again while another process holds it. */
export class MemberPort<T> {
  readonly #options: MemberPortOptions<T>
  readonly #pending: PendingConnections<T>
  #cancelRetry: Cancel = () => {}
  #stopWaiting: () => void = () => {}
  #isClosed = false

  constructor(options: MemberPortOptions<T>) {
    this.#options = options
    this.#pending = new PendingConnections(options)
  }

  /** The number of connections that have not identified themselves. */
  get unidentified(): number {
    return this.#pending.size
  }

  /** Rejects with a `NetworkError` when all attempts have failed, or when an attempt has failed and the port is closed. */
  async bind(at: ListenAddress): Promise<Listener> {
    const { network, logger, port, bindAttempts } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        return await network.listen(
          { ...at, keepAlive: true },
          (connection) => this.#accept(connection),
          (error) => this.#pending.logFailure(error),
        )
      } catch (error) {
        if (!(error instanceof NetworkError) || attempt === bindAttempts || this.#isClosed) throw error
        logger.warn(
          { id: 'quorum.port-not-bound', reason: error.message, attempt },
          `The ${port} cannot be bound yet; trying again`,
        )
        await this.#delay()
        if (this.#isClosed) throw error
      }
    }
  }

  /** Logs why a connection was closed that had identified itself, as of one that has not. */
  logRejection(remote: Address, refusal: Refusal): void {
    this.#pending.logRejection(remote, refusal)
  }

  /** Ends retries, and closes the connections that have not identified themselves. The listeners belong to the caller. */
  close(): void {
    this.#isClosed = true
    this.#cancelRetry()
    this.#stopWaiting()
    this.#pending.close()
  }

  #accept(connection: Connection): void {
    if (this.#isClosed) connection.destroy()
    else this.#pending.add(connection)
  }

  #delay(): Promise<void> {
    return new Promise((resolve) => {
      this.#stopWaiting = resolve
      this.#cancelRetry = this.#options.clock.after(RETRY_MS, this.#options.port, resolve)
    })
  }
}
