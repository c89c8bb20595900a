import { connectWith, type Client, type ConnectOptions } from '@zabra/client/core'
import { defaults, parseConfiguration, type ServerSettings } from '@zabra/server'
import { CLIENT_PORT, SimulatedServer } from './simulated-server.ts'
import type { CrashKind, Host } from '../world/process.ts'
import { SimulatedWorld } from '../world/world.ts'

export interface SimulateOptions {
  /** Decides everything that is left to chance. The same seed gives the same history. */
  readonly seed: number
  /** How many servers there are (default 1). */
  readonly servers?: number
  readonly settings?: Partial<ServerSettings>
  /** How long the story may take in the time of its world, in milliseconds (default an hour). */
  readonly limitMs?: number
}

/** A story that runs in a simulated world: servers, clients, and what happens to them. Time passes only as events do. */
export class Simulation {
  readonly world: SimulatedWorld
  readonly servers: readonly SimulatedServer[]
  readonly #hosts = new Map<Client, Host>()

  constructor({ seed, servers = 1, settings = {} }: SimulateOptions) {
    const world = new SimulatedWorld(seed)
    this.world = world
    const lines = Array.from({ length: servers }, (_, i) => `server.${i + 1}=s${i + 1}:2888:3888:participant`)
    const ensemble = servers > 1 ? { ensemble: parseConfiguration(lines.join('\n')) } : {}
    this.servers = Array.from({ length: servers }, (_, index) => {
      const own = defaults({
        dataDir: '/data',
        clientPort: CLIENT_PORT,
        tickTimeMs: 1000,
        preAllocSizeBytes: 0,
        extendedTypesEnabled: true,
        maxClientCnxns: 0,
        ...settings,
        ...ensemble,
        serverId: index + 1,
      })
      return new SimulatedServer(world, world.addHost(`s${index + 1}`), index + 1, own)
    })
    for (const server of this.servers) server.start()
  }

  /** A client on a machine of its own, connected to all servers unless told otherwise. */
  async client(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const host = this.world.addHost(`client${this.#hosts.size + 1}`)
    const { network, clock, random } = host.start().ports
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

  /** Lets time pass. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.world.schedule(ms, undefined, 'sleep', resolve))
  }

  /** The server with this number, from 1 on. */
  server(id: number): SimulatedServer {
    const server = this.servers[id - 1]
    if (server === undefined)
      throw new RangeError(`Expected a server from 1 to ${this.servers.length}, got ${id}`)
    return server
  }

  /** Ends a server, or the machine of a client, at once. */
  crash(whom: number | Client, kind: CrashKind = 'power'): void {
    if (typeof whom === 'number') this.server(whom).crash(kind)
    else this.hostOf(whom).crash(kind)
  }

  /** Lets a server, or a client, stand still until `resume`. */
  pause(whom: number | Client): void {
    this.hostOf(whom).pause()
  }

  resume(whom: number | Client): void {
    this.hostOf(whom).resume()
  }

  /** Cuts all ways between one group and everybody else that is named nowhere in it. */
  isolate(...group: readonly (number | Client)[]): void {
    const inside = new Set(group.map((one) => this.hostOf(one)))
    for (const a of inside)
      for (const b of this.world.hosts)
        if (!inside.has(b)) {
          this.world.network.cut(a, b)
          this.world.network.cut(b, a)
        }
  }

  /** Makes all ways whole. */
  heal(): void {
    this.world.network.heal()
  }

  /** The machine of a server or a client, for faults that have no method here. */
  hostOf(whom: number | Client): Host {
    if (typeof whom === 'number') return this.server(whom).host
    const host = this.#hosts.get(whom)
    if (host === undefined) throw new Error('Expected a client of this stage')
    return host
  }
}

/**
 * Runs a story in a simulated world and resolves to what it gives. Rejects with what it throws, and when it is not over
 * within `limitMs`. In the story wait for clients and for `stage.sleep` only: what needs real time never comes.
 */
export async function simulate<T>(
  options: SimulateOptions,
  story: (stage: Simulation) => Promise<T>,
): Promise<T> {
  const stage = new Simulation(options)
  return await stage.world.runUntilSettled(story(stage), options.limitMs ?? 3_600_000)
}
