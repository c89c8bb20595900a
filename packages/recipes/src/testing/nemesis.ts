import type { Client } from '@zabra/client/core'
import { SeededRandom } from '@zabra/runtime'
import { ExclusionChecker } from './exclusion-checker.ts'
import { advanceFor, advanceUntilSettled, leftovers } from './settle.ts'
import type { Scenario } from './scenarios/context.ts'
import { ManualWorld, type TappedConnection } from './world.ts'

/** A pseudo-random number generator that depends on the seed alone. */
export class RandomSource {
  readonly #random: SeededRandom

  constructor(seed: number) {
    this.#random = new SeededRandom(seed)
  }

  /** Returns an integer in [least, end). */
  between(least: number, end: number): number {
    const [a = 0, b = 0, c = 0, d = 0] = this.#random.bytes(4)
    return least + Math.floor(((((a << 24) | (b << 16) | (c << 8) | d) >>> 0) / 2 ** 32) * (end - least))
  }

  pick<T>(items: readonly T[]): T {
    return items[this.between(0, items.length)]!
  }

  chance(percent: number): boolean {
    return this.between(0, 100) < percent
  }
}

/** Size in bytes of a request that probably writes. */
const LARGE_REQUEST = 100

/**
 * Breaks connections at random: cuts, lost replies, silences, and refusals that outlast a session. Every second lost
 * reply is that to a write of the test, which the client rejects, with requests of the recipe in flight behind it.
 */
export class Nemesis {
  readonly log: string[] = []
  readonly #world: ManualWorld
  readonly #prng: RandomSource
  /** The clients, by the host name through which each connects. */
  readonly #clients: ReadonlyMap<string, Client>
  #lostReplies = 0
  readonly #refused = new Map<string, number>()
  readonly #silent = new Set<TappedConnection>()
  /** Connections that lose the reply to their next large request, and those that have sent it. */
  readonly #armed = new Set<TappedConnection>()
  readonly #losing = new Set<TappedConnection>()
  #isStopped = false

  constructor(world: ManualWorld, prng: RandomSource, clients: ReadonlyMap<string, Client>) {
    this.#world = world
    this.#prng = prng
    this.#clients = clients
    world.faults.open = ({ host }) => {
      if (world.clock.monotonic() < (this.#refused.get(host) ?? 0)) throw new Error('refused by the test')
    }
    world.faults.toServer = (chunk, connection) => {
      if (this.#silent.has(connection)) return undefined
      if (chunk.length > LARGE_REQUEST && this.#armed.delete(connection)) this.#losing.add(connection)
      return chunk
    }
    world.faults.toClient = (chunk, connection) => {
      if (this.#silent.has(connection)) return undefined
      if (!this.#losing.delete(connection)) return chunk
      world.clock.immediate(() => connection.cut())
      return undefined
    }
    this.#next()
  }

  /** Stops all faults. */
  stop(): void {
    this.#isStopped = true
    this.#refused.clear()
    this.#armed.clear()
    this.#losing.clear()
  }

  #next(): void {
    const { clock } = this.#world
    clock.after(this.#prng.between(20, 1500), 'chaos', () => {
      if (this.#isStopped) return
      this.#strike(this.#prng.pick([...this.#clients.keys()]))
      this.#next()
    })
  }

  #strike(host: string): void {
    const { clock } = this.#world
    const connection = this.#world.connections.findLast(({ server }) => server.host === host)
    if (connection === undefined) return
    const kind = this.#prng.pick(['cut', 'reply', 'away', 'expired', 'silent'] as const)
    this.log.push(`${clock.monotonic()} ${host} ${kind}`)
    if (kind === 'cut') return connection.cut()
    if (kind === 'reply') {
      this.#armed.add(connection)
      if (this.#lostReplies++ % 2 === 0) sendNeighbour(this.#clients.get(host)!)
      return
    }
    const ms = kind === 'expired' ? 19_000 : this.#prng.between(100, 15_000)
    if (kind === 'silent') {
      this.#silent.add(connection)
      clock.after(ms, 'end of a silence', () => connection.cut())
      return
    }
    this.#refused.set(host, clock.monotonic() + ms)
    connection.cut()
  }
}

/** Makes a write that is not idempotent, so that the client rejects it when its reply is lost. */
export function sendNeighbour(client: Client): void {
  // There is no such znode.
  client.setData('/neighbour', new Uint8Array(LARGE_REQUEST)).catch(() => {})
}

/** How random faults strike the clients of a scenario. */
export interface NemesisOptions {
  readonly prng: RandomSource
  /** There are from 3 to this number of clients, exclusive. */
  readonly maxClients: number
  /** Milliseconds that clients get to recover, within the scenario and after it. */
  readonly recoveryMs: { readonly within: number; readonly after: number }
  /** Milliseconds after which the faults end (default 30 s). */
  readonly faultsMs?: number
  readonly createChecker?: (limit?: number) => ExclusionChecker
}

/** The result of a run: what its clients left behind, and the faults. */
export interface NemesisRun {
  readonly left: readonly string[]
  readonly log: readonly string[]
  readonly clients: number
}

/** Runs a scenario whose clients are cut, silenced and expired at random. */
export async function runWithNemesis(
  scenario: Scenario,
  {
    prng,
    maxClients,
    recoveryMs,
    faultsMs = 30_000,
    createChecker = (limit) => new ExclusionChecker(limit),
  }: NemesisOptions,
): Promise<NemesisRun> {
  const world = await ManualWorld.start()
  const names = Array.from({ length: prng.between(3, maxClients) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const name of names) clients.push(await world.client({ servers: `${name}:2181` }))
  const observer = await world.client()
  const nemesis = new Nemesis(world, prng, new Map(names.map((name, i) => [name, clients[i]!])))
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const waitUntilHealed = async (): Promise<void> => {
    nemesis.stop()
    await sleep(recoveryMs.within)
  }
  world.clock.after(faultsMs, 'end of the chaos', () => nemesis.stop())
  const context = { prng, clients, names, observer, sleep, waitUntilHealed, createChecker }
  await advanceUntilSettled(world, 400_000, scenario(context))
  nemesis.stop()
  await advanceFor(world, recoveryMs.after)
  const left = await advanceUntilSettled(world, 10_000, leftovers(world, observer, clients))
  await world.end()
  return { left, log: nemesis.log, clients: clients.length }
}
