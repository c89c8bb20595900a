import type { SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { RetryingClient } from '../workload/retrying-client.ts'
import type { SessionClient } from '../workload/session-client.ts'

/** The node that probes write. */
export const READY_PATH = '/ready'

const SAMPLE_INTERVAL_MS = 5

export interface ReadinessMonitorOptions {
  readonly world: SimulatedWorld
  readonly servers: readonly SimulatedServer[]
  /** Returns a new client that uses one server only. */
  readonly clientOf: (server: SimulatedServer) => SessionClient
  /** How long a new client of a ready server may take for a session and a write, in milliseconds. */
  readonly withinMs: number
  readonly report: (what: string) => void
}

/**
 * Waits until each server says for the first time that it is ready, and checks that it then gives a new client a session and
 * acknowledges a write. There must be no faults meanwhile.
 */
export class ReadinessMonitor {
  readonly #options: ReadinessMonitorOptions
  readonly #awaited: Set<SimulatedServer>
  #probes = 0

  constructor(options: ReadinessMonitorOptions) {
    this.#options = options
    this.#awaited = new Set(options.servers)
    this.#sample()
  }

  /** Whether every server was ready and answered its probe. */
  get isDone(): boolean {
    return this.#awaited.size === 0 && this.#probes === 0
  }

  #sample(): void {
    for (const server of this.#awaited)
      if (server.server?.ready === true) {
        this.#awaited.delete(server)
        void this.#probe(server)
      }
    if (this.#awaited.size > 0)
      this.#options.world.schedule(SAMPLE_INTERVAL_MS, undefined, 'look at readiness', () => this.#sample())
  }

  async #probe(server: SimulatedServer): Promise<void> {
    const { world, clientOf, withinMs, report } = this.#options
    this.#probes++
    const at = world.now
    const { name } = server.host
    const request = { op: 'set', path: READY_PATH, data: name, version: -1 } as const
    const { result, server: answered } = await new RetryingClient(clientOf(server)).request(request)
    this.#probes--
    const took = world.now - at
    if (result.err !== 0 || answered !== name || took > withinMs)
      report(
        `${name} said at ${at.toFixed(1)} ms that it was ready, and answered the write of a new client ${took.toFixed(1)} ms later with error ${result.err}; expected it within ${withinMs} ms`,
      )
  }
}
