import { epochOf } from '@zabra/protocol'
import type { HostState, SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { formatZxid } from '../history/records.ts'
import type { Plan } from './plan.ts'
import { MANY_SLOW_PACKETS, SLOWEST_CLOCK_RATE } from './staleness.ts'

/** How often members are looked at, in milliseconds of world time. */
const SAMPLE_INTERVAL_MS = 50
/** Ticks after which what is committed is applied by a member that says that it is ready. */
const READY_TICKS = 2
/** How long packets take where few of them, and where many of them are slow, in milliseconds. */
const NETWORK_MS = { usual: 150, slow: 800 }
/** Most violations of one run that are reported. */
const MAX_REPORTS = 5

/** What a member has beside its public interface. */
interface Internals {
  readonly service: { readonly tree: { readonly lastZxid: number } } | undefined
}

/** What is known of one member. */
interface Observation {
  /** Since when its process has run and its leader has been able to reach it, as far as samples show. */
  reachableSince: number
  leader: number | undefined
  pid: number | undefined
}

export interface InStepMonitorOptions {
  readonly world: SimulatedWorld
  readonly plan: Plan
  readonly servers: readonly SimulatedServer[]
  readonly report: (what: string) => void
}

/**
 * Checks over a whole run that a follower or an observer that says that it is ready has applied everything that its leader had committed
 * two ticks ago by the slowest clock, and the time that packets take. A member whose leader cannot reach it knows of that after two ticks
 * without a packet, so it counts from the moment at which it could be reached for that long.
 */
export class InStepMonitor {
  readonly #options: InStepMonitorOptions
  readonly #lagMs: number
  readonly #observations = new Map<SimulatedServer, Observation>()
  /** The commits in the order of time and of zxids. */
  readonly #commits: { readonly at: number; readonly zxid: number }[] = []
  #reports = 0
  /** How often a member that was ready was compared. */
  samples = 0

  constructor(options: InStepMonitorOptions) {
    this.#options = options
    this.#lagMs = lagMsOf(options.plan)
    this.#schedule()
  }

  /** Takes a transaction that a leader has announced as committed. */
  committed(zxid: number): void {
    if (zxid > (this.#commits.at(-1)?.zxid ?? 0)) this.#commits.push({ at: this.#options.world.now, zxid })
  }

  #schedule(): void {
    this.#options.world.schedule(SAMPLE_INTERVAL_MS, undefined, 'compare members', () => {
      for (const server of this.#options.servers) this.#sample(server)
      this.#schedule()
    })
  }

  #sample(one: SimulatedServer): void {
    const { world, servers } = this.#options
    const { host, server } = one
    const observation = this.#observationOf(one)
    const pid = host.current?.pid
    const leader = server?.leader
    const from = servers.find(({ id }) => id === leader)?.host
    const isReachable =
      server !== undefined && !host.isPaused && from !== undefined && this.#reaches(from, host)
    if (!isReachable || pid !== observation.pid || leader !== observation.leader)
      observation.reachableSince = world.now
    observation.pid = pid
    observation.leader = leader
    if (!isReachable || (server.role !== 'following' && server.role !== 'observing')) return
    if (world.now - observation.reachableSince < this.#lagMs || !server.ready) return
    this.#compare(one, server.epoch)
  }

  /** Whether packets of the leader reach a member, also by way of another one. */
  #reaches(leader: HostState, member: HostState): boolean {
    const { plan, servers, world } = this.#options
    if (plan.observerMasters !== true) return !world.network.isCut(leader, member)
    return servers.every(
      ({ host }) =>
        !host.isPaused && !world.network.isCut(leader, host) && !world.network.isCut(host, member),
    )
  }

  #compare({ host, server }: SimulatedServer, epoch: number): void {
    const { world, report } = this.#options
    const due = this.#commits.findLast(
      ({ at, zxid }) => at <= world.now - this.#lagMs && epochOf(zxid) <= epoch,
    )
    if (due === undefined) return
    this.samples++
    const applied = (server as unknown as Internals).service?.tree.lastZxid ?? 0
    if (applied >= due.zxid || this.#reports++ >= MAX_REPORTS) return
    report(
      `${host.name} said at ${world.now.toFixed(1)} ms that it was ready, and had applied ${formatZxid(applied)}; ${formatZxid(due.zxid)} was committed ${(world.now - due.at).toFixed(1)} ms before; expected it within ${this.#lagMs.toFixed(0)} ms`,
    )
  }

  #observationOf(server: SimulatedServer): Observation {
    let observation = this.#observations.get(server)
    if (observation === undefined) {
      observation = { reachableSince: this.#options.world.now, leader: undefined, pid: undefined }
      this.#observations.set(server, observation)
    }
    return observation
  }
}

/** Returns within how many milliseconds a member that says that it is ready applies what is committed. */
function lagMsOf({ network, settings, faults, observerMasters }: Plan): number {
  const packets = network.tailRate > MANY_SLOW_PACKETS ? NETWORK_MS.slow : NETWORK_MS.usual
  const links = faults.map((fault) => (fault.kind === 'slowLink' ? fault.ms : 0))
  const hops = observerMasters === true ? 2 : 1
  return (
    (READY_TICKS * settings.tickTimeMs) / SLOWEST_CLOCK_RATE + hops * (packets + 2 * Math.max(0, ...links))
  )
}
