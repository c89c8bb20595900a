import type { Worker } from '../workload/worker.ts'
import {
  Prng,
  type Host,
  type HostState,
  jumpWallClock,
  setClockRate,
  type SimulatedServer,
  type SimulatedWorld,
} from '@zabra/testing'
import type { Recorder } from '../strangers/recorder.ts'
import { Stranger } from '../strangers/stranger.ts'
import type { SessionClient } from '../workload/session-client.ts'
import { READ_WITHIN_MS, type OracleFile } from './oracle-file.ts'
import type { AdminPorts } from './admin-ports.ts'
import type { LevelOperator } from './level-operator.ts'
import type { Operator } from './operator.ts'
import { steal } from './thief.ts'
import type { Fault } from './fault.ts'
import { DATA_DIR } from './settings.ts'

/** What faults act on. */
export interface FaultTargets {
  readonly world: SimulatedWorld
  readonly servers: readonly SimulatedServer[]
  readonly workers: readonly (Pick<Worker, 'host' | 'isReadOnly' | 'start'> & {
    /** A raw client, whose session may be stolen. */
    readonly client?: Pick<SessionClient, 'hasCertificate' | 'ownedTicket' | 'session'>
  })[]
  /** Changes the membership; undefined for a standalone server. */
  readonly operator: Operator | undefined
  /** Returns the host of the current leader, as far as the quorum traffic shows. */
  readonly leader: () => HostState | undefined
  /** The learners whose connections to their leaders break; undefined for a standalone server. */
  readonly refused: Set<HostState> | undefined
  /** What the oracle says; undefined without one. */
  readonly oracle: OracleFile | undefined
  /** Reports that a server has served a session of a user to another client. */
  readonly onStolen: (what: string) => void
  /** What servers send each other; undefined for a standalone server. */
  readonly recorder: Recorder | undefined
  /** Whether servers that no configuration names may follow. */
  readonly acceptsJoiners: boolean
  /** Calls back once, when a leader proposes a reconfiguration. */
  readonly onNextReconfig: (proposed: (leader: HostState) => void) => void
  /** Calls back once, when a leader has sent a chosen successor one transaction more than the others. */
  readonly onNextTransfer: (sent: (leader: HostState, successor: HostState) => void) => void
  /** Finalizes feature levels and installs releases; undefined where all servers run the same one. */
  readonly levels: LevelOperator | undefined
  /** The HTTP ports of the servers; undefined where nothing asks them. */
  readonly ports: AdminPorts | undefined
  /** Calls back once, when a leader proposes a feature level. */
  readonly onNextLevel: (proposed: (leader: string) => void) => void
}

/** How long an operator waits after a refused transfer, in milliseconds. */
const RETRY_MS = 50
/** How long the syncs of a slow disk take on average, in milliseconds. */
const SLOW_SYNC_MS = 300

/** Injects the faults of a plan and ends them. */
export class FaultInjector {
  readonly #targets: FaultTargets
  /** Number of faults of each kind. */
  readonly counts: Record<string, number> = {}
  #isHealed = false
  /** The host that sends four-letter words. */
  #admin: Host | undefined
  readonly #usualSync = new Map<Host, number>()
  readonly #strangers: Stranger[] = []
  #thieves = 0

  constructor(scene: FaultTargets) {
    this.#targets = scene
  }

  /** Schedules all faults of a plan. */
  schedule(faults: readonly Fault[]): void {
    for (const fault of faults)
      this.#targets.world.schedule(fault.at, undefined, 'fault', () => {
        if (!this.#isHealed) this.#inject(fault)
      })
  }

  /** Ends all faults: servers run, links are healed, disks work. */
  heal(): void {
    this.#isHealed = true
    const { world, servers, workers, operator, oracle, refused, levels } = this.#targets
    operator?.stop()
    levels?.heal()
    refused?.clear()
    oracle?.forbid()
    for (const stranger of this.#strangers) stranger.stop()
    world.network.heal()
    for (const { host } of [...servers, ...workers]) host.resume()
    for (const server of servers) {
      const { conditions } = server.host.disk
      conditions.isFull = false
      conditions.failNextSync = false
      server.host.disk.onNextDurableWrite = undefined
      conditions.syncMs = this.#usualSync.get(server.host) ?? conditions.syncMs
      setClockRate(server.host.clockSkew, world.now, 1)
      server.start()
    }
  }

  #inject(fault: Fault): void {
    const { world } = this.#targets
    this.#count(fault.kind)
    world.trace(undefined, 'fault', JSON.stringify(fault))
    const undo = this.#begin(fault)
    if (undo === undefined) return
    world.schedule(fault.forMs, undefined, 'fault ends', () => {
      if (this.#isHealed) return
      world.trace(undefined, 'ends', fault.kind)
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
      case 'handOver':
        this.#sendCommand('ydld', this.#server(fault.server))
        return undefined
      case 'transfer':
        void this.#transfer(fault)
        return undefined
      case 'interruptTransfer':
        this.#targets.onNextTransfer((leader, successor) => this.#interruptTransfer(fault, leader, successor))
        return undefined
      case 'tornWrite':
        this.#cutAmidWrite(fault)
        return undefined
      case 'killAll':
      case 'powerCutAll': {
        const { servers } = this.#targets
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
        return this.#slowDisk(this.#server(fault.server).host, fault.syncMs)
      case 'fullDisk':
      case 'syncError':
        return this.#disk(fault.kind, this.#server(fault.server).host)
      case 'wallJump':
        jumpWallClock(this.#server(fault.server).host.clockSkew, fault.by)
        return undefined
      case 'drift':
        setClockRate(this.#server(fault.server).host.clockSkew, this.#targets.world.now, fault.by)
        return undefined
      case 'interruptReconfig':
        this.#targets.onNextReconfig((leader) => this.#interrupt(fault, leader))
        return undefined
      case 'interruptFinalize':
        this.#targets.onNextLevel((leader) => this.#interruptLevel(fault, leader))
        return undefined
      case 'finalize':
        void this.#targets.levels?.finalize(() => this.#server(fault.server), fault.level, fault.forMs)
        return undefined
      case 'install':
        return this.#targets.levels?.install(this.#server(fault.server), fault.level)
      case 'staleLeader':
        return this.#isolateStaleLeader(this.#server(fault.server).host)
      case 'clientCut':
      case 'clientReset':
      case 'clientCrash':
      case 'clientPause':
        return this.#client(fault.kind, fault.client, fault.server)
      case 'stranger':
        return this.#startStranger(fault)
      case 'alone':
        return this.#leaveAlone(this.#server(fault.server))
      case 'thief':
        this.#startThief(fault)
        return undefined
      case 'laterEpoch': {
        const server = this.#server(fault.server)
        server.crash('power')
        raiseAcceptedEpoch(server.host, fault.by)
        return () => server.start()
      }
      case 'refused':
        return this.#refuse(this.#server(fault.server).host)
      case 'leave':
      case 'vote':
      case 'observe':
      case 'wipe':
      case 'renew':
      case 'outdated':
        this.#targets.operator?.request({ ...fault, kind: fault.kind, server: this.#server(fault.server) })
        return undefined
      case 'isolate':
      case 'dropInbound':
      case 'dropOutbound':
      case 'split':
      case 'bridge':
      case 'slowLink':
      case 'resetPeers':
        return this.#network(fault)
    }
  }

  /** Kills the other voter of two and lets the survivor lead alone. */
  #leaveAlone(other: SimulatedServer): () => void {
    const { world, oracle } = this.#targets
    other.crash('kill')
    oracle?.allow()
    return () => {
      const survivor = oracle?.survivor.server
      if (survivor?.serving === true && survivor.role === 'leading' && !other.isUp) this.#count('led alone')
      oracle?.forbid()
      world.schedule(READ_WITHIN_MS, undefined, 'fault ends', () => {
        if (!this.#isHealed) other.start()
      })
    }
  }

  #startThief({ client, server, logsIn }: Extract<Fault, { kind: 'thief' }>): void {
    const { world, workers, onStolen } = this.#targets
    const victim = workers[client]
    const ticket = victim?.client?.ownedTicket
    if (ticket === undefined) return
    const { session } = victim!.client!
    const name = `thief${this.#thieves++}`
    const { address } = this.#server(server)
    void steal({
      world,
      prng: world.prng.fork(name),
      name,
      server: address,
      ticket,
      // A client with a certificate has no login: the thief shows another certificate.
      ...(victim!.client!.hasCertificate
        ? { user: undefined, certificate: logsIn ? 'eve' : undefined }
        : { user: logsIn ? 'eve' : undefined, certificate: undefined }),
      onAnswer: (isServed) => {
        if (!isServed) return this.#count('thieves refused')
        onStolen(`${address.name} served session ${session} of ${victim!.host.name} to ${name}`)
      },
    })
  }

  #startStranger({ from, server, seed }: Extract<Fault, { kind: 'stranger' }>): (() => void) | undefined {
    const { world, servers, recorder, acceptsJoiners } = this.#targets
    if (recorder === undefined) return undefined
    const neighbour = from === 'server' ? this.#server(server) : undefined
    const name = `x${this.#strangers.length}`
    const stranger = new Stranger({
      world,
      prng: new Prng(seed).fork(name),
      host: world.addHost(name, neighbour?.host.address),
      servers: servers.length,
      neighbour: neighbour?.id,
      leaderOfNeighbour: () => {
        const server = neighbour?.server
        if (server?.serving !== true || server.role !== 'following') return undefined
        return { id: server.leader!, epoch: server.epoch }
      },
      canFollow: !acceptsJoiners,
      recorder,
    })
    this.#strangers.push(stranger)
    return () => stranger.stop()
  }

  /** A leader has proposed a reconfiguration: interrupt it, possibly before the commit. */
  #interrupt(
    { how, afterMs, forMs }: Extract<Fault, { kind: 'interruptReconfig' }>,
    leader: HostState,
  ): void {
    const { world, servers } = this.#targets
    const server = servers.find(({ host }) => host === leader)
    if (server === undefined) return
    world.schedule(afterMs, undefined, 'fault', () => {
      if (this.#isHealed) return
      this.#count('reconfigurations interrupted')
      const kind = how === 'reset' ? 'resetPeers' : how
      this.#inject({ kind, server: server.id, at: world.now, forMs })
    })
  }

  /** A leader has proposed a feature level: interrupt it, or servers that are to store it. */
  #interruptLevel(
    { how, target, afterMs, forMs }: Extract<Fault, { kind: 'interruptFinalize' }>,
    leader: string,
  ): void {
    const { world, servers } = this.#targets
    const others = servers.filter(({ host }) => host.name !== leader)
    const other = others.length > 0 ? [world.prng.fork(`interrupted ${world.now}`).pick(others)] : []
    const leaders = servers.filter(({ host }) => host.name === leader)
    const interrupted = { leader: leaders, other, all: servers }[target]
    world.schedule(afterMs, undefined, 'fault', () => {
      if (this.#isHealed) return
      this.#count('feature levels interrupted')
      const kind = how === 'reset' ? 'resetPeers' : how
      for (const { id } of interrupted) this.#inject({ kind, server: id, at: world.now, forMs })
    })
  }

  #refuse(host: Host): () => void {
    const { world, refused, servers } = this.#targets
    refused?.add(host)
    // It has to join its leader again.
    for (const other of servers) if (other.host !== host) world.network.reset(host, other.host)
    return () => refused?.delete(host)
  }

  /** Shuts a server down as an operator does, and starts it again later. */
  #stop(server: SimulatedServer, forMs: number): void {
    const incarnation = server.host.current
    void server.server?.close().then(() => {
      if (server.host.current !== incarnation) return
      server.crash('kill')
      this.#count('clean shutdowns')
      this.#targets.world.schedule(forMs, undefined, 'fault ends', () => server.start())
    })
  }

  /** Sends a four-letter word to a server, if it can be reached. */
  #sendCommand(word: string, { address }: SimulatedServer): void {
    const { world } = this.#targets
    this.#admin ??= world.addHost('admin')
    const { network } = (this.#admin.current ?? this.#admin.start()).platform
    network.connect(address).then(
      (wire) => {
        wire.setHandler({ data: () => {}, drain: () => {}, closed: () => {} })
        wire.write(new TextEncoder().encode(word))
      },
      () => {},
    )
  }

  /** Asks the leader to hand leadership over to a server, again after refusals for `forMs`. */
  async #transfer({ server, to, forMs }: Extract<Fault, { kind: 'transfer' }>): Promise<void> {
    const { world, ports } = this.#targets
    const until = world.now + forMs
    const body = JSON.stringify({ to })
    while (!this.#isHealed && world.now <= until) {
      const answer = await ports?.request(this.#server(server), 'POST', '/api/v1/leader/transfer', body)
      if (answer !== undefined) this.#count(`transfers answered with ${answer.status}`)
      if (answer?.status === 200) return
      await new Promise<void>(
        (resolve) => void world.schedule(RETRY_MS, undefined, 'operator waits', resolve),
      )
    }
  }

  /** A leader has sent its successor the last transaction of its epoch: interrupt one of them, or all servers. */
  #interruptTransfer(
    { how, target, afterMs, forMs }: Extract<Fault, { kind: 'interruptTransfer' }>,
    leader: HostState,
    successor: HostState,
  ): void {
    const { world, servers } = this.#targets
    const hosts = { leader: [leader], successor: [successor], both: [leader, successor] }
    const interrupted = servers.filter(({ host }) => target === 'all' || hosts[target].includes(host))
    world.schedule(afterMs, undefined, 'fault', () => {
      if (this.#isHealed) return
      this.#count('transfers interrupted')
      const kind = how === 'reset' ? 'resetPeers' : how
      for (const { id } of interrupted) this.#inject({ kind, server: id, at: world.now, forMs })
    })
  }

  #cutAmidWrite({ server: id, afterMs, forMs }: Extract<Fault, { kind: 'tornWrite' }>): void {
    const { world } = this.#targets
    const server = this.#server(id)
    server.host.disk.onNextDurableWrite = () =>
      world.schedule(afterMs, undefined, 'fault', () => {
        if (this.#isHealed) return
        server.crash('power')
        world.schedule(forMs, undefined, 'fault ends', () => {
          if (!this.#isHealed) server.start()
        })
      })
  }

  #disk(kind: 'fullDisk' | 'syncError', host: Host): (() => void) | undefined {
    const { conditions } = host.disk
    if (kind === 'syncError') {
      conditions.failNextSync = true
      return undefined
    }
    conditions.isFull = true
    return () => (conditions.isFull = false)
  }

  #slowDisk(host: Host, syncMs = SLOW_SYNC_MS): () => void {
    const { conditions } = host.disk
    const usual = this.#usualSync.get(host) ?? conditions.syncMs
    this.#usualSync.set(host, usual)
    conditions.syncMs = Math.max(usual, syncMs)
    return () => (conditions.syncMs = usual)
  }

  #client(
    kind: 'clientCut' | 'clientReset' | 'clientCrash' | 'clientPause',
    client: number,
    server: number,
  ): (() => void) | undefined {
    const { world } = this.#targets
    const worker = this.#targets.workers[client]
    const { host } = this.#server(server)
    if (worker === undefined) return undefined
    switch (kind) {
      case 'clientReset':
        world.network.reset(worker.host, host)
        return undefined
      case 'clientCut':
        world.network.cut(worker.host, host)
        world.network.cut(host, worker.host)
        return () => world.network.healLink(worker.host, host)
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
      { kind: 'isolate' | 'dropInbound' | 'dropOutbound' | 'split' | 'bridge' | 'slowLink' | 'resetPeers' }
    >,
  ): (() => void) | undefined {
    const { world, servers } = this.#targets
    const hosts = servers.map(({ host }) => host)
    switch (fault.kind) {
      case 'slowLink': {
        const [a, b] = [this.#server(fault.server).host, this.#server(fault.other).host]
        world.network.slowLink(a, b, fault.ms)
        return () => world.network.slowLink(a, b, 0)
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
        // Two halves that cannot reach each other, and one server that reaches both.
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
      case 'dropInbound':
      case 'dropOutbound': {
        const { host } = this.#server(fault.server)
        const others = hosts.filter((other) => other !== host)
        const ways: (readonly [Host, Host])[] = []
        if (fault.kind !== 'dropInbound') ways.push(...others.map((other) => [host, other] as const))
        if (fault.kind !== 'dropOutbound') ways.push(...others.map((other) => [other, host] as const))
        return this.#cut(ways)
      }
    }
  }

  /** The leader keeps only clients that just read, and a slow clock makes it believe in its leadership for longer. */
  #isolateStaleLeader(host: Host): () => void {
    const { world, servers, workers } = this.#targets
    const writers = workers.filter(({ isReadOnly }) => !isReadOnly)
    const others = [...servers, ...writers].map((one) => one.host).filter((other) => other !== host)
    const heal = this.#cut(others.flatMap((other) => [[host, other] as const, [other, host] as const]))
    const { rate } = host.clockSkew
    setClockRate(host.clockSkew, world.now, rate / 2)
    return () => {
      heal()
      setClockRate(host.clockSkew, world.now, rate)
    }
  }

  #cut(ways: readonly (readonly [Host, Host])[]): () => void {
    const { network } = this.#targets.world
    for (const [a, b] of ways) network.cut(a, b)
    return () => {
      for (const [a, b] of ways) network.healLink(a, b)
    }
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }

  #server(id: number): SimulatedServer {
    const { servers, leader } = this.#targets
    if (id > 0) return servers[(id - 1) % servers.length]!
    const host = leader()
    return servers.find((server) => server.host === host) ?? servers[0]!
  }
}

/** Raises the accepted epoch on the disk of a machine that is down. */
function raiseAcceptedEpoch({ disk }: Host, by: number): void {
  const path = `${DATA_DIR}/version-2/acceptedEpoch`
  const now = disk.durable(path)?.durableBytes
  if (now === undefined) return
  const epoch = Number(new TextDecoder().decode(now).trim()) + by
  disk.install(path, new TextEncoder().encode(String(epoch)))
}
