import type { SimulatedServer, SimulatedWorld, UnexpectedStop } from '@zabra/testing'
import type { AdminPorts } from './admin-ports.ts'
import { required, visibleLevels } from './level-file.ts'
import type { LevelMonitor } from './level-monitor.ts'
import { NEWEST_LEVEL, type LevelsPlan } from './levels-plan.ts'

const PATH = '/api/v1/cluster/finalize'
/** How long the operator waits after a refusal, in milliseconds. */
const PAUSE_MS = 50
/** How long the operator waits after a leader has handed over, in milliseconds. */
const HAND_OVER_MS = 500
/** How long a level takes to a disk at most, in milliseconds. */
const WRITTEN_MS = 1000

/** Finalizes feature levels over HTTP, and installs other releases. */
export class LevelOperator {
  readonly counts: Record<string, number> = {}
  /** Starts that failed because the folder requires a later release, as they must. */
  readonly expectedStops = new Set<UnexpectedStop>()
  readonly #world: SimulatedWorld
  readonly #servers: readonly SimulatedServer[]
  readonly #monitor: LevelMonitor
  readonly #plan: LevelsPlan
  #isHealed = false
  lastAnswer = ''
  /** Whether the leader has refused last to hand over, while a voter without a vote blocks a level. */
  #isTransferRefused = false
  readonly #ports: AdminPorts

  constructor(
    world: SimulatedWorld,
    servers: readonly SimulatedServer[],
    monitor: LevelMonitor,
    plan: LevelsPlan,
    ports: AdminPorts,
  ) {
    this.#ports = ports
    this.#world = world
    this.#servers = servers
    this.#monitor = monitor
    this.#plan = plan
    for (const server of servers) server.onStop = (stop) => this.#onStop(server, stop)
  }

  /** Asks a server to finalize a level, the highest possible one by default, and again after refusals for `forMs`. */
  async finalize(server: () => SimulatedServer, level: number | undefined, forMs: number): Promise<void> {
    const until = this.#world.now + forMs
    const isHealed = this.#isHealed
    // A request from before healing must not raise the level above that for which the servers were upgraded.
    const isDue = (): boolean => this.#isHealed === isHealed && this.#world.now <= until
    while (isDue() && !(await this.#ask(server(), level, isDue))) await this.#pause()
  }

  /** Stops a server and returns a function that starts it as another release. */
  install(server: SimulatedServer, level: number): () => void {
    server.crash('kill')
    server.featureLevel = level
    return () => server.start()
  }

  /** Ends all requests, and upgrades the servers that could not serve their ensemble; all of them where the newest level is finalized. */
  heal(): void {
    this.#isHealed = true
    this.#upgrade()
    // A write of a level may be in flight.
    this.#world.schedule(WRITTEN_MS, undefined, 'operator looks again', () => {
      for (const server of this.#upgrade()) server.start()
    })
  }

  #upgrade(): readonly SimulatedServer[] {
    const needed = this.#plan.finalizesAtEnd
      ? NEWEST_LEVEL
      : Math.max(...this.#servers.map(({ host }) => required(visibleLevels(host))))
    const earlier = this.#servers.filter(({ featureLevel }) => featureLevel! < needed)
    for (const server of earlier) {
      server.crash('kill')
      server.featureLevel = NEWEST_LEVEL
    }
    return earlier
  }

  /** Finalizes the newest level where the plan says so. Resolves to whether it is final within `withinMs`. */
  async conclude(withinMs: number): Promise<boolean> {
    if (!this.#plan.finalizesAtEnd) return true
    void this.finalize(() => this.#leader, NEWEST_LEVEL, withinMs)
    return this.#unblock(() => this.#monitor.finalized === NEWEST_LEVEL, withinMs)
  }

  /** Resolves to whether all servers have the same level within `withinMs`, and none waits to be finalized. */
  async settle(withinMs: number): Promise<boolean> {
    return this.#unblock(() => this.#monitor.hasSettled, withinMs)
  }

  /** Gives voters their votes until `isDone`. Resolves to whether that is within `withinMs`, or a voter cannot get one. */
  async #unblock(isDone: () => boolean, withinMs: number): Promise<boolean> {
    const until = this.#world.now + withinMs
    void this.#giveVotes(() => isDone() || this.#world.now >= until)
    if (await this.#world.run(until, isDone)) return true
    // A leader that is a quorum alone chooses its epochs before others connect, and they stay below what the voter has accepted.
    if (!this.#isTransferRefused) return false
    this.#count('levels that wait for a vote')
    return true
  }

  /** Does what the leader advises where a voter without a vote blocks a level (quorum-protocol 8.3), until `isDone`. */
  async #giveVotes(isDone: () => boolean): Promise<void> {
    this.#isTransferRefused = false
    for (; !isDone(); await this.#pause(HAND_OVER_MS)) {
      const leader = this.#leader
      const answer = await this.#ports.request(leader, 'GET', PATH)
      if (answer?.status !== 200) continue
      this.lastAnswer = answer.text
      const { obstacles } = JSON.parse(answer.text) as { readonly obstacles: readonly string[] }
      if (!obstacles.some((obstacle) => obstacle.includes('follows without a vote'))) {
        // One that is away may be about to follow without a vote again.
        if (obstacles.length === 0) this.#isTransferRefused = false
        continue
      }
      if (isDone()) continue
      const transfer = await this.#ports.request(leader, 'POST', '/api/v1/leader/transfer')
      if (transfer === undefined) continue
      this.#count(`transfer answered with ${transfer.status}`)
      // The others are no quorum without this leader.
      this.#isTransferRefused = transfer.status === 409
      if (!this.#isTransferRefused || isDone()) continue
      leader.crash('kill')
      leader.start()
    }
  }

  get #leader(): SimulatedServer {
    return (
      this.#servers.find(({ server }) => server?.role === 'leading' || server?.role === 'standalone') ??
      this.#servers[0]!
    )
  }

  /** Asks a server to finalize a level. Resolves to whether it has accepted. */
  async #ask(server: SimulatedServer, level: number | undefined, isDue: () => boolean): Promise<boolean> {
    const body = level === undefined ? '' : JSON.stringify({ level })
    const answer = await this.#ports.request(server, 'POST', PATH, body, isDue)
    if (answer === undefined) return false
    const { status, text } = answer
    this.lastAnswer = text
    const isAccepted = status === 200 || status === 202
    this.#count(`finalize answered with ${status}`)
    if (isAccepted) this.#monitor.accepted(server, levelIn(text), status === 200)
    return isAccepted
  }

  /** Installs the newest release where the one that was to start does not read the folder. */
  #onStop(server: SimulatedServer, stop: UnexpectedStop): void {
    if (stop.during !== 'start' || !stop.reason.includes('Install a release of feature level')) return
    if (required(visibleLevels(server.host)) <= server.featureLevel!) return
    this.expectedStops.add(stop)
    this.#count('releases that do not read their folder')
    server.featureLevel = NEWEST_LEVEL
  }

  #pause(ms = PAUSE_MS): Promise<void> {
    return new Promise((resolve) => void this.#world.schedule(ms, undefined, 'operator waits', resolve))
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }
}

const levelIn = (text: string): number => (JSON.parse(text) as { readonly level: number }).level
