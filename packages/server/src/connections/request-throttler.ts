import type { ClientChannel } from './client-channel.ts'
import { PauseReason } from './flow-control.ts'
import type { ServerStats } from './stats.ts'

/** Stops reading the connections of writing clients while too many writes are in flight (`globalOutstandingLimit`). */
export class RequestThrottler {
  readonly #outstanding: () => number
  readonly #limit: () => number
  readonly #stats: ServerStats
  readonly #throttled = new Set<ClientChannel>()

  /** `outstanding` returns the writes in flight, `limit` how many of them are allowed now. */
  constructor(outstanding: () => number, limit: () => number, stats: ServerStats) {
    this.#outstanding = outstanding
    this.#limit = limit
    this.#stats = stats
  }

  /** Stops reading a connection, if the server is overloaded, until `release` finds that it is not. */
  throttle(channel: ClientChannel): void {
    if (!this.#isOverloaded) return
    this.#stats.requestsThrottled++
    this.#throttled.add(channel)
    channel.flow.pause(PauseReason.overload)
  }

  /** Reads the throttled connections again, unless the server is still overloaded. */
  release(): void {
    if (this.#throttled.size === 0 || this.#isOverloaded) return
    for (const channel of this.#throttled) channel.flow.resume(PauseReason.overload)
    this.#throttled.clear()
  }

  remove(channel: ClientChannel): void {
    this.#throttled.delete(channel)
  }

  get #isOverloaded(): boolean {
    return this.#outstanding() > this.#limit()
  }
}
