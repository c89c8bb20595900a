import type { SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { MemoryHttp, type TextResponse } from '@zabra/testkit'

/** How long a request takes to a server, in milliseconds. */
const REQUEST_MS = 0.2
/** The time between two looks at whether a server that has not answered still runs, in milliseconds. */
const PAUSE_MS = 50

/** The HTTP ports of servers. */
export class AdminPorts {
  readonly #world: SimulatedWorld
  readonly #ports = new Map<SimulatedServer, MemoryHttp>()

  /** The servers have not started yet. */
  constructor(world: SimulatedWorld, servers: readonly SimulatedServer[]) {
    this.#world = world
    for (const server of servers) {
      const http = new MemoryHttp()
      this.#ports.set(server, http)
      server.networkFactories = { http: () => http }
    }
  }

  /**
   * Sends a request to a server if it `isDue` when it arrives. Resolves to the answer, or undefined where there is none; never where the
   * server ends before the request arrives.
   */
  async request(
    server: SimulatedServer,
    method: string,
    path: string,
    body = '',
    isDue = (): boolean => true,
  ): Promise<TextResponse | undefined> {
    const incarnation = server.host.current
    if (incarnation === undefined || server.server === undefined) return undefined
    await new Promise<void>((resolve) => void incarnation.schedule(REQUEST_MS, 'HTTP request', resolve))
    if (!isDue()) return undefined
    let isOver = false
    // A server that stops, or cannot write to its disk, answers with status 500 or not at all.
    const answer = this.#ports
      .get(server)!
      .request(path, { method, body })
      .catch(() => undefined)
      .finally(() => (isOver = true))
    const crash = async (): Promise<undefined> => {
      while (incarnation.isAlive && !isOver) await this.#pause()
    }
    const first = await Promise.race([answer, crash()])
    return incarnation.isAlive ? first : undefined
  }

  #pause(): Promise<void> {
    return new Promise(
      (resolve) => void this.#world.schedule(PAUSE_MS, undefined, 'HTTP request waits', resolve),
    )
  }
}
