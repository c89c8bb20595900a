import { NetworkError, type Cancel, type Clock, type Connection, type Listener } from '@zabra/runtime'
import type { Logger, Network } from '@zabra/runtime'

/** Where to listen: on all interfaces when there is no host. */
export interface ListenAddress {
  readonly host?: string
  readonly port: number
}

export interface PortBinderOptions {
  readonly network: Network
  readonly clock: Clock
  readonly logger: Logger
  /** For log lines and timers: `election port`, for example. */
  readonly port: string
  /** How often binding is tried, one second apart; 0 without end. */
  readonly attempts: number
  readonly accept: (connection: Connection) => void
  /** Called when the network could not accept a connection. */
  readonly acceptFailed: (error: Error) => void
}

const RETRY_MS = 1000

/** Binds the ports of a member, and tries again while another process holds them. */
export class PortBinder {
  readonly #options: PortBinderOptions
  #cancelRetry: Cancel = () => {}
  #stopWaiting: () => void = () => {}
  #isStopped = false

  constructor(options: PortBinderOptions) {
    this.#options = options
  }

  /** Rejects with a `NetworkError` when all attempts have failed, or when an attempt has failed and the binder is stopped. */
  async bind(at: ListenAddress): Promise<Listener> {
    const { network, logger, port, attempts, accept, acceptFailed } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        return await network.listen({ ...at, keepAlive: true }, accept, acceptFailed)
      } catch (error) {
        if (!(error instanceof NetworkError) || attempt === attempts || this.#isStopped) throw error
        logger.warn(
          { id: 'quorum.port-not-bound', reason: error.message, attempt },
          `The ${port} cannot be bound yet; trying again`,
        )
        await this.#delay()
        if (this.#isStopped) throw error
      }
    }
  }

  /** Ends retries. */
  stop(): void {
    this.#isStopped = true
    this.#cancelRetry()
    this.#stopWaiting()
  }

  #delay(): Promise<void> {
    return new Promise((resolve) => {
      this.#stopWaiting = resolve
      this.#cancelRetry = this.#options.clock.after(RETRY_MS, this.#options.port, resolve)
    })
  }
}
