import type { Worker } from '../workload/worker.ts'
import { jumpWall, setRate } from '../world/clock.ts'
import type { Host } from '../world/process.ts'
import type { World } from '../world/world.ts'
import type { Operator } from './operator.ts'
import type { Fault } from './plan.ts'
import type { SimulatedServer } from './server.ts'

/** What faults act on. */
export interface Scene {
  readonly world: World
  readonly servers: readonly SimulatedServer[]
  readonly workers: readonly Pick<Worker, 'host' | 'onlyReads' | 'start'>[]
  /** Whoever changes the ensemble; undefined with one server. */
  readonly operator: Operator | undefined
  /** The host that leads now, as far as the wire tells. */
  readonly leader: () => Host | undefined
  /** Calls back once, when a leader proposes a change of the ensemble. */
  readonly nextChange: (proposed: (leader: Host) => void) => void
}

/** Makes faults happen, and ends them. */
export class Faults {
  readonly #scene: Scene
  /** How often each kind happened. */
  readonly counts: Record<string, number> = {}
  #healed = false
  /** Where four-letter words come from. */
  #admin: Host | undefined
  readonly #usualSync = new Map<Host, number>()

  constructor(scene: Scene) {
    this.#scene = scene
  }

  /** Puts all faults of a plan into the queue. */
  schedule(faults: readonly Fault[]): void {
    for (const fault of faults)
      this.#scene.world.later(fault.at, undefined, 'fault', () => {
        if (!this.#healed) this.#happen(fault)
      })
  }

  /** Ends everything: all run, all reach each other, all disks work. */
  heal(): void {
    this.#healed = true
    const { world, servers, workers, operator } = this.#scene
    operator?.stop()
    world.network.heal()
    for (const { host } of [...servers, ...workers]) host.resume()
    for (const server of servers) {
      const { temper } = server.host.platter
      temper.full = false
      temper.failNextSync = false
      server.host.platter.nextWrite = undefined
      temper.syncMs = this.#usualSync.get(server.host) ?? temper.syncMs
      setRate(server.host.clock, world.now, 1)
      server.start()
    }
  }

  #happen(fault: Fault): void {
    const { world } = this.#scene
    this.counts[fault.kind] = (this.counts[fault.kind] ?? 0) + 1
    world.note(undefined, 'fault', JSON.stringify(fault))
    const undo = this.#begin(fault)
    if (undo === undefined) return
    world.later(fault.forMs, undefined, 'fault ends', () => {
      if (this.#healed) return
      world.note(undefined, 'ends', fault.kind)
      undo()
    })
  }

  #begin(fault: Fault): (() => void) | undefined {
    switch (fault.kind) {
      case 'kill':
      case 'powerCut': {
        const server = this.#server(fault.server)
        server.crash(fault.kind === 'kill' ? 'kill' : 'power')
        return () => server.start()
      }
      case 'stop':
        this.#stop(this.#server(fault.server), fault.forMs)
        return undefined
      case 'yield':
        this.#say('ydld', this.#server(fault.server))
        return undefined
      case 'tornWrite':
        this.#cutAmidWrite(fault)
        return undefined
      case 'killAll':
      case 'powerCutAll': {
        const { servers } = this.#scene
        for (const server of servers) server.crash(fault.kind === 'killAll' ? 'kill' : 'power')
        return () => {
          for (const server of servers) server.start()
        }
      }
      case 'pause': {
        const { host } = this.#server(fault.server)
        host.pause()
        return () => host.resume()
      }
      case 'slowDisk':
      case 'fullDisk':
      case 'syncError':
        return this.#disk(fault.kind, this.#server(fault.server).host)
      case 'wallJump':
        jumpWall(this.#server(fault.server).host.clock, fault.by)
        return undefined
      case 'drift':
        setRate(this.#server(fault.server).host.clock, this.#scene.world.now, fault.by)
        return undefined
      case 'halfChange':
        this.#scene.nextChange((leader) => this.#interrupt(fault, leader))
        return undefined
      case 'deposed':
        return this.#depose(this.#server(fault.server).host)
      case 'clientCut':
      case 'clientReset':
      case 'clientCrash':
      case 'clientPause':
        return this.#client(fault.kind, fault.client, fault.server)
      case 'leave':
      case 'vote':
      case 'observe':
      case 'wipe':
      case 'renew':
        this.#scene.operator?.ask({ ...fault, kind: fault.kind, server: this.#server(fault.server) })
        return undefined
      case 'isolate':
      case 'deaf':
      case 'mute':
      case 'split':
      case 'bridge':
      case 'slowLink':
      case 'resetPeers':
        return this.#network(fault)
    }
  }

  /** A change of the ensemble is proposed; its leader does not come to commit it, perhaps. */
  #interrupt({ how, afterMs, forMs }: Extract<Fault, { kind: 'halfChange' }>, leader: Host): void {
    const { world, servers } = this.#scene
    const server = servers.find(({ host }) => host === leader)
    if (server === undefined) return
    world.later(afterMs, undefined, 'fault', () => {
      if (this.#healed) return
      this.counts['changes interrupted'] = (this.counts['changes interrupted'] ?? 0) + 1
      const kind = how === 'reset' ? 'resetPeers' : how
      this.#happen({ kind, server: server.id, at: world.now, forMs })
    })
  }

  /** Stops a server as its operator does, who starts it again later. */
  #stop(server: SimulatedServer, forMs: number): void {
    const life = server.host.current
    void server.server?.close().then(() => {
      if (server.host.current !== life) return
      server.crash('kill')
      this.counts['stops that came to their end'] = (this.counts['stops that came to their end'] ?? 0) + 1
      this.#scene.world.later(forMs, undefined, 'fault ends', () => server.start())
    })
  }

  /** Says a four-letter word to a server, if it can be reached. */
  #say(word: string, { place }: SimulatedServer): void {
    const { world } = this.#scene
    this.#admin ??= world.addHost('admin')
    const { network } = (this.#admin.current ?? this.#admin.start()).ports
    network.connect(place).then(
      (wire) => {
        wire.listen({ data: () => {}, drain: () => {}, closed: () => {} })
        wire.write(new TextEncoder().encode(word))
      },
      () => {},
    )
  }

  #cutAmidWrite({ server: id, afterMs, forMs }: Extract<Fault, { kind: 'tornWrite' }>): void {
    const { world } = this.#scene
    const server = this.#server(id)
    server.host.platter.nextWrite = () =>
      world.later(afterMs, undefined, 'fault', () => {
        if (this.#healed) return
        server.crash('power')
        world.later(forMs, undefined, 'fault ends', () => {
          if (!this.#healed) server.start()
        })
      })
  }

  #disk(kind: 'slowDisk' | 'fullDisk' | 'syncError', host: Host): (() => void) | undefined {
    const { temper } = host.platter
    if (kind === 'syncError') {
      temper.failNextSync = true
      return undefined
    }
    if (kind === 'fullDisk') {
      temper.full = true
      return () => (temper.full = false)
    }
    const usual = this.#usualSync.get(host) ?? temper.syncMs
    this.#usualSync.set(host, usual)
    temper.syncMs = Math.max(usual, 300)
    return () => (temper.syncMs = usual)
  }

  #client(
    kind: 'clientCut' | 'clientReset' | 'clientCrash' | 'clientPause',
    client: number,
    server: number,
  ): (() => void) | undefined {
    const { world } = this.#scene
    const worker = this.#scene.workers[client]
    const { host } = this.#server(server)
    if (worker === undefined) return undefined
    switch (kind) {
      case 'clientReset':
        world.network.reset(worker.host, host)
        return undefined
      case 'clientCut':
        world.network.cut(worker.host, host)
        world.network.cut(host, worker.host)
        return () => world.network.mend(worker.host, host)
      case 'clientPause':
        worker.host.pause()
        return () => worker.host.resume()
      case 'clientCrash':
        if (worker.host.current === undefined) return undefined
        worker.host.crash('power')
        return () => {
          if (worker.host.current === undefined) worker.start()
        }
    }
  }

  #network(
    fault: Extract<
      Fault,
      { kind: 'isolate' | 'deaf' | 'mute' | 'split' | 'bridge' | 'slowLink' | 'resetPeers' }
    >,
  ): (() => void) | undefined {
    const { world, servers } = this.#scene
    const hosts = servers.map(({ host }) => host)
    switch (fault.kind) {
      case 'slowLink': {
        const [a, b] = [this.#server(fault.server).host, this.#server(fault.other).host]
        world.network.slow(a, b, fault.ms)
        return () => world.network.slow(a, b, 0)
      }
      case 'resetPeers': {
        const { host } = this.#server(fault.server)
        for (const other of hosts) if (other !== host) world.network.reset(host, other)
        return undefined
      }
      case 'split': {
        const group = new Set(fault.group.map((id) => this.#server(id).host))
        return this.#cut(
          hosts.flatMap((a) =>
            hosts.filter((b) => group.has(a) !== group.has(b)).map((b) => [a, b] as const),
          ),
        )
      }
      case 'bridge': {
        // Two halves that do not see each other, and one server that sees both.
        const bridge = this.#server(fault.server).host
        const others = hosts.filter((host) => host !== bridge)
        const half = new Set(others.slice(0, Math.floor(others.length / 2)))
        return this.#cut(
          others.flatMap((a) =>
            others.filter((b) => half.has(a) !== half.has(b)).map((b) => [a, b] as const),
          ),
        )
      }
      case 'isolate':
      case 'deaf':
      case 'mute': {
        const { host } = this.#server(fault.server)
        const others = hosts.filter((other) => other !== host)
        const ways: (readonly [Host, Host])[] = []
        if (fault.kind !== 'deaf') ways.push(...others.map((other) => [host, other] as const))
        if (fault.kind !== 'mute') ways.push(...others.map((other) => [other, host] as const))
        return this.#cut(ways)
      }
    }
  }

  /** The server goes on for those clients alone that only read, and its slow clock lets it believe in its leadership for longer. */
  #depose(host: Host): () => void {
    const { world, servers, workers } = this.#scene
    const writers = workers.filter(({ onlyReads }) => !onlyReads)
    const others = [...servers, ...writers].map((one) => one.host).filter((other) => other !== host)
    const mend = this.#cut(others.flatMap((other) => [[host, other] as const, [other, host] as const]))
    const { rate } = host.clock
    setRate(host.clock, world.now, rate / 2)
    return () => {
      mend()
      setRate(host.clock, world.now, rate)
    }
  }

  #cut(ways: readonly (readonly [Host, Host])[]): () => void {
    const { network } = this.#scene.world
    for (const [a, b] of ways) network.cut(a, b)
    return () => {
      for (const [a, b] of ways) network.mend(a, b)
    }
  }

  #server(id: number): SimulatedServer {
    const { servers, leader } = this.#scene
    if (id > 0) return servers[(id - 1) % servers.length]!
    const host = leader()
    return servers.find((server) => server.host === host) ?? servers[0]!
  }
}
