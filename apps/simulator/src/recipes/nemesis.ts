import type { Prng } from '@zabra/testing'
import type { Member, Cluster } from './cluster.ts'

/** Injects random faults into participants and servers until it is stopped. */
export class Nemesis {
  readonly #cluster: Cluster
  readonly #chance: Prng
  readonly #meanMs: number
  readonly counts: Record<string, number> = {}
  #isOver = false

  constructor(cluster: Cluster, prng: Prng) {
    this.#cluster = cluster
    this.#chance = prng
    this.#meanMs = prng.pick([300, 800, 2000])
    this.#next()
  }

  /** Ends all faults. */
  stop(): void {
    this.#isOver = true
    const { stage, members } = this.#cluster
    stage.heal()
    for (const member of members) {
      member.losesReply = false
      this.#cluster.wake(member)
    }
    for (const server of stage.servers) {
      server.host.resume()
      server.start()
    }
  }

  #next(): void {
    const wait = 20 + this.#chance.exponential(this.#meanMs)
    this.#cluster.stage.world.schedule(wait, undefined, 'trouble', () => {
      if (this.#isOver) return
      if (this.#chance.chance(0.25)) this.#strikeServer()
      else this.#strikeMember(this.#chance.pick(this.#cluster.members))
      this.#next()
    })
  }

  #strikeMember(member: Member): void {
    const { stage } = this.#cluster
    const kind = this.#chance.pickWeighted({ reset: 3, lostReply: 6, cut: 2, expiry: 1, pause: 2 })
    this.#count(kind)
    const forMs = this.#chance.between(100, 9000)
    const servers = stage.servers.map(({ host }) => host)
    const { network } = stage.world
    switch (kind) {
      case 'reset':
        for (const server of servers) network.reset(member.host, server)
        return
      case 'lostReply':
        member.losesReply = true
        return
      case 'pause':
        member.host.pause()
        // Half of the pauses outlast any session timeout.
        return this.#later(this.#chance.chance(0.5) ? forMs : forMs + 14_000, () =>
          this.#cluster.wake(member),
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

  #strikeServer(): void {
    const { stage } = this.#cluster
    const leader = stage.servers.find(({ server }) => server?.role === 'leading')
    const server =
      leader !== undefined && this.#chance.chance(0.4) ? leader : this.#chance.pick(stage.servers)
    const kind = this.#chance.pickWeighted({
      kill: 2,
      power: 2,
      pause: 1,
      isolate: stage.servers.length > 1 ? 2 : 0,
    })
    this.#count(`server ${kind}`)
    const forMs = this.#chance.between(100, 5000)
    switch (kind) {
      case 'kill':
      case 'power':
        server.crash(kind)
        return this.#later(forMs, () => server.start())
      case 'pause':
        server.host.pause()
        return this.#later(forMs, () => server.host.resume())
      case 'isolate': {
        const others = stage.servers.filter((other) => other !== server).map(({ host }) => host)
        const { network } = stage.world
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
    this.#cluster.stage.world.trace(undefined, 'trouble', kind)
  }

  #later(ms: number, end: () => void): void {
    this.#cluster.stage.world.schedule(ms, undefined, 'end of trouble', () => {
      if (!this.#isOver) end()
    })
  }
}
