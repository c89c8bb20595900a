import type { Prng } from '@zabra/testing'
import { sendNeighbour } from '../../../../packages/recipes/src/testing/nemesis.ts'
import type { Member, Cluster } from './cluster.ts'

/** Injects random faults into participants and servers until it is stopped. */
export class Nemesis {
  readonly #cluster: Cluster
  readonly #prng: Prng
  readonly #meanMs: number
  readonly counts: Record<string, number> = {}
  #isStopped = false

  constructor(cluster: Cluster, prng: Prng) {
    this.#cluster = cluster
    this.#prng = prng
    this.#meanMs = prng.pick([300, 800, 2000])
    this.#scheduleNext()
  }

  /** Ends all faults. */
  stop(): void {
    this.#isStopped = true
    const { simulation, members } = this.#cluster
    simulation.heal()
    for (const member of members) {
      member.losesReply = false
      this.#cluster.resume(member)
    }
    for (const server of simulation.servers) {
      server.host.resume()
      server.start()
    }
  }

  #scheduleNext(): void {
    const wait = 20 + this.#prng.exponential(this.#meanMs)
    this.#cluster.simulation.world.schedule(wait, undefined, 'trouble', () => {
      if (this.#isStopped) return
      if (this.#prng.chance(0.25)) this.#faultServer()
      else this.#faultMember(this.#prng.pick(this.#cluster.members))
      this.#scheduleNext()
    })
  }

  #faultMember(member: Member): void {
    const { simulation } = this.#cluster
    const kind = this.#prng.pickWeighted({ reset: 3, lostReply: 6, cut: 2, expiry: 1, pause: 2 })
    this.#count(kind)
    const forMs = this.#prng.between(100, 9000)
    const servers = simulation.servers.map(({ host }) => host)
    const { network } = simulation.world
    switch (kind) {
      case 'reset':
        for (const server of servers) network.reset(member.host, server)
        return
      case 'lostReply':
        member.losesReply = true
        // Every second time it is the reply to another write of the client, with requests of the recipe behind it.
        if (this.counts['lostReply']! % 2 === 0) sendNeighbour(member.client)
        return
      case 'pause':
        member.host.pause()
        // Half of the pauses outlast any session timeout.
        return this.#later(this.#prng.chance(0.5) ? forMs : forMs + 14_000, () =>
          this.#cluster.resume(member),
        )
      case 'cut':
      case 'expiry':
        for (const server of servers) {
          network.cut(member.host, server)
          network.cut(server, member.host)
        }
        return this.#later(kind === 'cut' ? forMs : forMs + 14_000, () => {
          for (const server of servers) network.healLink(member.host, server)
        })
    }
  }

  #faultServer(): void {
    const { simulation } = this.#cluster
    const leader = simulation.servers.find(({ server }) => server?.role === 'leading')
    const server =
      leader !== undefined && this.#prng.chance(0.4) ? leader : this.#prng.pick(simulation.servers)
    const kind = this.#prng.pickWeighted({
      kill: 2,
      power: 2,
      pause: 1,
      isolate: simulation.servers.length > 1 ? 2 : 0,
    })
    this.#count(`server ${kind}`)
    const forMs = this.#prng.between(100, 5000)
    switch (kind) {
      case 'kill':
      case 'power':
        server.crash(kind)
        return this.#later(forMs, () => server.start())
      case 'pause':
        server.host.pause()
        return this.#later(forMs, () => server.host.resume())
      case 'isolate': {
        const others = simulation.servers.filter((other) => other !== server).map(({ host }) => host)
        const { network } = simulation.world
        for (const other of others) {
          network.cut(server.host, other)
          network.cut(other, server.host)
        }
        return this.#later(forMs, () => {
          for (const other of others) network.healLink(server.host, other)
        })
      }
    }
  }

  #count(kind: string): void {
    this.counts[kind] = (this.counts[kind] ?? 0) + 1
    this.#cluster.simulation.world.trace(undefined, 'trouble', kind)
  }

  #later(ms: number, end: () => void): void {
    this.#cluster.simulation.world.schedule(ms, undefined, 'end of trouble', () => {
      if (!this.#isStopped) end()
    })
  }
}
