import { connectWith, type Client, type ConnectOptions } from '@zabra/client/core'
import type { GivenServerSettings } from '@zabra/server'
import { defaults, parseConfiguration } from '@zabra/server/core'
import { withGiven } from '../given-settings.ts'
import { CLIENT_PORT, SimulatedServer } from './simulated-server.ts'
import type { CrashKind } from '../world/disk-image.ts'
import type { Host } from '../world/process.ts'
import { SimulatedWorld } from '../world/world.ts'

export interface SimulateOptions {
  /** Seed of all random decisions. The same seed gives the same run. */
  readonly seed: number
  /** Number of servers (default 1). */
  readonly servers?: number | undefined
  readonly settings?: GivenServerSettings | undefined
  /** Limit for the scenario in world time, in milliseconds (default an hour). */
  readonly limitMs?: number | undefined
}

/** A simulation: servers, clients and the faults a scenario injects. Time passes only as events run. */
export class Simulation {
  readonly world: SimulatedWorld
  readonly servers: readonly SimulatedServer[]
  readonly #hosts = new Map<Client, Host>()

  constructor({ seed, servers = 1, settings }: SimulateOptions) {
    const world = new SimulatedWorld(seed)
    this.world = world
    const lines = Array.from({ length: servers }, (_, i) => `server.${i + 1}=s${i + 1}:2888:3888:participant`)
    const ensemble = servers > 1 ? { ensemble: parseConfiguration(lines.join('\n')) } : {}
    const ofTests = {
      dataDir: '/data',
      clientPort: CLIENT_PORT,
      tickTimeMs: 1000,
      preAllocSizeBytes: 0,
      extendedTypesEnabled: true,
      maxClientCnxns: 0,
    }
    this.servers = Array.from({ length: servers }, (_, index) => {
      const own = defaults({ ...withGiven(ofTests, settings), ...ensemble, serverId: index + 1 })
      return new SimulatedServer(world, world.addHost(`s${index + 1}`), index + 1, own)
    })
    for (const server of this.servers) server.start()
  }

  /** Connects a client on a machine of its own, to all servers by default. */
  async client(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const host = this.world.addHost(`client${this.#hosts.size + 1}`)
    const { network, clock, random } = host.start().platform
    const client = await connectWith(
      {
        servers: this.servers.map(({ host: { name } }) => `${name}:${CLIENT_PORT}`),
        transport: { schemes: ['tcp'], open: (server, signal) => network.connect(server, { signal }) },
        ...options,
      },
      { platform: { clock, random } },
    )
    this.#hosts.set(client, host)
    return client
  }

  /** Lets world time pass. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.world.schedule(ms, undefined, 'sleep', resolve))
  }

  /** Returns the server with this number, from 1. */
  server(id: number): SimulatedServer {
    const server = this.servers[id - 1]
    if (server === undefined)
      throw new RangeError(`Expected a server from 1 to ${this.servers.length}, got ${id}`)
    return server
  }

  /** Crashes a server, or the machine of a client. */
  crash(target: number | Client, kind: CrashKind = 'power'): void {
    if (typeof target === 'number') this.server(target).crash(kind)
    else this.hostOf(target).crash(kind)
  }

  /** Pauses a server or a client until `resume`. */
  pause(target: number | Client): void {
    this.hostOf(target).pause()
  }

  resume(target: number | Client): void {
    this.hostOf(target).resume()
  }

  /** Cuts all links between this group and every other host. */
  isolate(...group: readonly (number | Client)[]): void {
    const inside = new Set(group.map((one) => this.hostOf(one)))
    for (const a of inside)
      for (const b of this.world.hosts)
        if (!inside.has(b)) {
          this.world.network.cut(a, b)
          this.world.network.cut(b, a)
        }
  }

  /** Heals all links. */
  heal(): void {
    this.world.network.heal()
  }

  /** Returns the machine of a server or a client, for faults that have no method here. */
  hostOf(target: number | Client): Host {
    if (typeof target === 'number') return this.server(target).host
    const host = this.#hosts.get(target)
    if (host === undefined) throw new Error('Expected a client of this simulation')
    return host
  }
}

/**
 * Runs a scenario in a simulated world and resolves to its result. Rejects with what the scenario throws, or when it
 * has not ended within `limitMs`. A scenario awaits only clients and `simulation.sleep`: nothing that needs real time
 * ever happens.
 */
export async function simulate<T>(
  options: SimulateOptions,
  scenario: (simulation: Simulation) => Promise<T>,
): Promise<T> {
  const simulation = new Simulation(options)
  return await simulation.world.runUntilSettled(scenario(simulation), options.limitMs ?? 3_600_000)
}
