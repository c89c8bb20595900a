import { connect } from '@zabra/client'
import type { ScenarioContext } from '../../../../packages/client/src/testing/scenarios.ts'
import type { Server } from '../harness/servers.ts'
import { Proxy } from './proxy.ts'

/** Server processes behind proxies, for the client scenarios. */
export class ScenarioServers {
  readonly #servers: readonly Server[]
  readonly #proxies: readonly Proxy[]
  readonly #stopped = new Set<Server>()

  private constructor(servers: readonly Server[], proxies: readonly Proxy[]) {
    this.#servers = servers
    this.#proxies = proxies
  }

  /** Starts a proxy in front of each server's port. */
  static async behindProxies(
    servers: readonly Server[],
    portOf = ({ port }: Server): number => port,
  ): Promise<ScenarioServers> {
    return new ScenarioServers(
      servers,
      await Promise.all(servers.map((server) => Proxy.start(portOf(server)))),
    )
  }

  /** The addresses of the proxies. */
  get addresses(): string[] {
    return this.#proxies.map(({ address }) => address)
  }

  get context(): ScenarioContext {
    return {
      shortSession: 2000,
      connect: (options) =>
        connect({
          servers: this.addresses,
          sessionTimeoutMs: 6000,
          signal: AbortSignal.timeout(30_000),
          ...options,
        }),
      cut: () => this.#proxies.forEach((proxy) => proxy.cut()),
      isolate: () => {
        const restore = this.#proxies.map((proxy) => proxy.refuse())
        return () => restore.forEach((one) => one())
      },
      crash: async () => {
        const server = this.#busiest()
        await server.kill()
        await server.start()
      },
      pause: () => {
        const server = this.#busiest()
        server.signal('SIGSTOP')
        this.#stopped.add(server)
        return () => {
          this.#stopped.delete(server)
          server.signal('SIGCONT')
        }
      },
    }
  }

  /** Returns the server with the most connections. */
  #busiest(): Server {
    const counts = this.#proxies.map(({ connections }) => connections)
    return this.#servers[counts.indexOf(Math.max(...counts))]!
  }

  async close(): Promise<void> {
    for (const server of this.#stopped) server.signal('SIGCONT')
    await Promise.all(this.#proxies.map((proxy) => proxy.close()))
  }
}
