import type { Client } from '@zabra/client/core'
import { RandomSource } from '../../../../packages/recipes/src/testing/nemesis.ts'
import { Ledger } from '../../../../packages/recipes/src/testing/ledger.ts'
import { scenarios, type ScenarioContext } from '../../../../packages/recipes/src/testing/scenarios/index.ts'
import { Prng, type TraceEvent } from '@zabra/testing'
import { Trouble } from './nemesis.ts'
import { Troupe } from './cluster.ts'

/** Within so much of the world's time a play must come to its end, or somebody is stuck. */
const LIMIT_MS = 900_000
/** So long things go wrong at most. */
const TROUBLE_MS = 45_000
/** So long everybody has to notice that all is well. */
const CALM_MS = 45_000

export interface Played {
  readonly violations: readonly string[]
  readonly steps: number
  readonly hash: number
  readonly counts: Readonly<Record<string, number>>
}

/** Plays one recipe with one seed, and gives what was wrong. */
export async function playRecipe(
  name: string,
  seed: number,
  servers: number,
  onNote?: (note: TraceEvent) => void,
): Promise<Played> {
  const scene = scenarios[name]
  if (scene === undefined)
    throw new RangeError(`Expected a recipe among ${Object.keys(scenarios).join(', ')}, got ${name}`)
  const violations: string[] = []
  const unhandled = (reason: unknown): void => void violations.push(`unhandled: ${tell(reason)}`)
  process.on('unhandledRejection', unhandled)
  const chance = new Prng(seed).fork(`recipe ${name}`)
  const troupe = new Troupe(seed, servers, chance.pick([60, 1000]))
  const { world } = troupe.stage
  world.onTrace = onNote
  let trouble: Trouble | undefined
  try {
    await world.runUntilSettled(
      troupe.gather(chance.integer(3, chance.pick([4, 8, 20])), chance.pick([4000, 8000, 12_000])),
      60_000,
    )
    trouble = new Trouble(troupe, chance.fork('trouble'))
    const own = trouble
    world.schedule(TROUBLE_MS, undefined, 'end of all trouble', () => own.stop())
    await world.runUntilSettled(scene.run(castOf(troupe, trouble, seed)), LIMIT_MS)
    own.stop()
    await world.run(world.now + CALM_MS)
    violations.push(...(await leftovers(troupe)))
    for (const { stops } of troupe.stage.servers)
      for (const { server, during, reason } of stops)
        violations.push(`${server} stopped in ${during}: ${reason}`)
  } catch (error) {
    violations.push(tell(error))
  } finally {
    process.off('unhandledRejection', unhandled)
  }
  return { violations, steps: world.eventCount, hash: world.hash, counts: trouble?.counts ?? {} }
}

function castOf(troupe: Troupe, trouble: Trouble, seed: number): ScenarioContext {
  const { stage, members, witness } = troupe
  const sleep = (ms: number): Promise<void> => stage.sleep(ms)
  return {
    prng: new RandomSource(seed),
    clients: members.map(({ client }) => client),
    names: members.map(({ name }) => name),
    observer: witness,
    sleep,
    waitUntilHealed: async () => {
      trouble.stop()
      await sleep(CALM_MS)
      await witness.sync('/')
    },
    ledger: (limit) => new Ledger(limit, (who) => troupe.isAsleep(who)),
  }
}

/** What is left when everybody has gone: nodes of live sessions, watches on servers and in clients. */
async function leftovers(troupe: Troupe): Promise<string[]> {
  const { witness, members, stage } = troupe
  const found: string[] = []
  const look = async (): Promise<void> => {
    await witness.sync('/')
    for await (const path of witness.walk('/')) {
      const stat = await witness.exists(path)
      if (stat !== undefined && stat.ephemeralOwner !== 0n) found.push(`${path} is left`)
    }
  }
  await stage.world.runUntilSettled(look(), 30_000)
  if (troupe.watches > 0) found.push(`${troupe.watches} watches are left on the servers`)
  for (const { name, client } of members) {
    const { size } = watchesOf(client)
    if (size > 0) found.push(`${size} watches are left in the client of ${name}`)
  }
  return found
}

const watchesOf = (client: Client): { readonly size: number } =>
  (client as unknown as { sharedSession: { watches: { size: number } } }).sharedSession.watches

const tell = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)
