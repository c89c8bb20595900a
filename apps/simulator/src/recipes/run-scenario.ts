import type { Client } from '@zabra/client/core'
import { RandomSource } from '../../../../packages/recipes/src/testing/nemesis.ts'
import { ExclusionChecker } from '../../../../packages/recipes/src/testing/exclusion-checker.ts'
import { scenarios, type ScenarioContext } from '../../../../packages/recipes/src/testing/scenarios/index.ts'
import { Prng, type TraceEvent } from '@zabra/testing'
import { withUnhandledRejections } from '../simulation/unhandled-rejections.ts'
import { Nemesis } from './nemesis.ts'
import { Cluster } from './cluster.ts'

/** World time within which a scenario must end, in milliseconds; otherwise a participant is stuck. */
const LIMIT_MS = 900_000
/** How long faults are injected at most, in milliseconds. */
const FAULTS_MS = 45_000
/** How long participants may take to notice that faults have ended, in milliseconds. */
const RECOVERY_MS = 45_000

export interface ScenarioResult {
  readonly violations: readonly string[]
  readonly eventCount: number
  readonly hash: number
  readonly counts: Readonly<Record<string, number>>
}

/** Alternates between one server and three, by seed. */
export const serversOf = (seed: number): number => [3, 1, 3][seed % 3]!

/** Runs the scenario of one recipe with one seed. */
export async function runScenario(
  name: string,
  seed: number,
  servers: number,
  onTrace?: (note: TraceEvent) => void,
): Promise<ScenarioResult> {
  const scenario = scenarios[name]
  if (scenario === undefined)
    throw new RangeError(`Expected a recipe among ${Object.keys(scenarios).join(', ')}, got ${name}`)
  const violations: string[] = []
  const prng = new Prng(seed).fork(`recipe ${name}`)
  const cluster = new Cluster(seed, servers, prng.pick([60, 1000]))
  const { world } = cluster.simulation
  world.onTrace = onTrace
  let nemesis: Nemesis | undefined
  const play = async (): Promise<void> => {
    await world.runUntilSettled(
      cluster.connectAll(prng.integer(3, prng.pick([4, 8, 20])), prng.pick([4000, 8000, 12_000])),
      60_000,
    )
    const own = new Nemesis(cluster, prng.fork('trouble'))
    nemesis = own
    world.schedule(FAULTS_MS, undefined, 'end of all trouble', () => own.stop())
    await world.runUntilSettled(scenario.run(contextOf(cluster, own, seed)), LIMIT_MS)
    own.stop()
    await world.run(world.now + RECOVERY_MS)
    violations.push(...(await leftovers(cluster)))
    for (const { stops } of cluster.simulation.servers)
      for (const { server, during, reason } of stops)
        violations.push(`${server} stopped in ${during}: ${reason}`)
  }
  try {
    await withUnhandledRejections((what) => void violations.push(`unhandled: ${what}`), play)
  } catch (error) {
    violations.push(describe(error))
  }
  return { violations, eventCount: world.eventCount, hash: world.hash, counts: nemesis?.counts ?? {} }
}

function contextOf(cluster: Cluster, nemesis: Nemesis, seed: number): ScenarioContext {
  const { simulation, members, observer } = cluster
  const sleep = (ms: number): Promise<void> => simulation.sleep(ms)
  return {
    prng: new RandomSource(seed),
    clients: members.map(({ client }) => client),
    names: members.map(({ name }) => name),
    observer,
    sleep,
    waitUntilHealed: async () => {
      nemesis.stop()
      await sleep(RECOVERY_MS)
      await observer.sync('/')
    },
    createChecker: (limit) => new ExclusionChecker(limit, (name) => cluster.isPaused(name)),
  }
}

/**
 * Returns what is left when all participants have finished: ephemeral nodes of live sessions, watches on servers and in
 * clients.
 */
async function leftovers(cluster: Cluster): Promise<string[]> {
  const { observer, members, simulation } = cluster
  const found: string[] = []
  const inspect = async (): Promise<void> => {
    await observer.sync('/')
    for await (const path of observer.walk('/')) {
      const stat = await observer.exists(path)
      if (stat !== undefined && stat.ephemeralOwner !== 0n) found.push(`${path} is left`)
    }
  }
  await simulation.world.runUntilSettled(inspect(), 30_000)
  if (cluster.watches > 0) found.push(`${cluster.watches} watches are left on the servers`)
  for (const { name, client } of members) {
    const { size } = watchesOf(client)
    if (size > 0) found.push(`${size} watches are left in the client of ${name}`)
  }
  return found
}

const watchesOf = (client: Client): { readonly size: number } =>
  (client as unknown as { sharedSession: { watches: { size: number } } }).sharedSession.watches

const describe = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)
