import { connectWith, type Client } from '@zabra/client/core'
import { CLIENT_PORT, type Host, Simulation } from '@zabra/testing'
import { LossyConnection } from './lossy-connection.ts'

/** A participant: a client on a host of its own. */
export interface Member {
  readonly name: string
  readonly host: Host
  readonly client: Client
  /** Whether the reply to its next long request will be lost. */
  losesReply: boolean
  /** World time at which it was last resumed. */
  resumedAt: number
}

const SETTINGS = {
  tickTimeMs: 500,
  initLimit: 10,
  syncLimit: 4,
  minSessionTimeoutMs: 1000,
  maxSessionTimeoutMs: 20_000,
  containerCheckIntervalMs: 3000,
  digestEnabled: true,
  commitLogCount: 100,
  snapTreeShare: 0,
}

/** Servers, participants, and an observer client that only server faults affect. */
export class Cluster {
  readonly simulation: Simulation
  readonly members: Member[] = []
  observer!: Client

  constructor(seed: number, servers: number, snapCount: number) {
    this.simulation = new Simulation({ seed, servers, settings: { ...SETTINGS, snapCount } })
  }

  /** Connects all clients. */
  async connectAll(count: number, sessionTimeout: number): Promise<void> {
    const joining = Array.from({ length: count }, (_, i) => this.#connect(`p${i}`, sessionTimeout))
    this.members.push(...(await Promise.all(joining)))
    // The name of a host seeds its random numbers: another one changes every run.
    this.observer = (await this.#connect('witness', 20_000)).client
  }

  /**
   * Returns whether a participant is paused, or was resumed at this very moment and cannot yet know what it has lost.
   */
  isPaused(name: string): boolean {
    const member = this.members.find((one) => one.name === name)
    return member !== undefined && (member.host.isPaused || member.resumedAt === this.simulation.world.now)
  }

  resume(member: Member): void {
    if (!member.host.isPaused) return
    member.resumedAt = this.simulation.world.now
    member.host.resume()
  }

  get watches(): number {
    return this.simulation.servers.reduce((sum, { server }) => sum + (server?.stats().watches ?? 0), 0)
  }

  async #connect(name: string, sessionTimeout: number): Promise<Member> {
    const { world, servers } = this.simulation
    const host = world.addHost(name)
    const { network, clock, random } = host.start().platform
    const lost = { reply: false }
    const isArmed = (): boolean => {
      const { reply } = lost
      lost.reply = false
      return reply
    }
    const client = await connectWith(
      {
        servers: servers.map((server) => `${server.host.name}:${CLIENT_PORT}`),
        sessionTimeoutMs: sessionTimeout,
        waitForever: true,
        transport: {
          schemes: ['tcp'],
          open: async (server, signal) =>
            new LossyConnection(await network.connect(server, { signal }), isArmed),
        },
      },
      { platform: { clock, random } },
    )
    return {
      name,
      host,
      client,
      resumedAt: -1,
      get losesReply() {
        return lost.reply
      },
      set losesReply(loses) {
        lost.reply = loses
      },
    }
  }
}
