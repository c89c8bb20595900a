import type { Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Nemesis, RandomSource } from './testing/nemesis.ts'
import { advanceFor, leftovers, advanceUntilSettled } from './testing/fault-injector.ts'
import { ExclusionChecker } from './testing/exclusion-checker.ts'
import type { Scenario } from './testing/scenarios/context.ts'
import { runLeaderBodies } from './testing/scenarios/leader-bodies.ts'
import { registrations } from './testing/scenarios/registrations.ts'
import { runPermits } from './testing/scenarios/permits.ts'
import { queues } from './testing/scenarios/queues.ts'
import { seedsOf, withSeeds } from './testing/fault-fixture.ts'
import { ManualWorld } from './testing/world.ts'

/** Runs with clients that are cut, silenced and expired at random; checks that nothing is left behind. */
async function runWithFaults(seed: number, scenario: Scenario): Promise<void> {
  const prng = new RandomSource(seed)
  const world = await ManualWorld.start()
  const hosts = Array.from({ length: prng.between(3, 9) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const observer = await world.client()
  const nemesis = new Nemesis(world, prng, hosts)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const waitUntilHealed = async (): Promise<void> => {
    nemesis.stop()
    await sleep(45_000)
  }
  world.clock.after(30_000, 'end of the chaos', () => nemesis.stop())
  await advanceUntilSettled(
    world,
    400_000,
    scenario({
      prng,
      clients,
      names: hosts,
      observer,
      sleep,
      waitUntilHealed,
      createChecker: (limit) => new ExclusionChecker(limit),
    }),
  )
  await advanceFor(world, 1000)
  expect(await advanceUntilSettled(world, 10_000, leftovers(world, observer, clients))).toEqual([])
  await world.end()
}

const scenarios: Readonly<Record<string, Scenario>> = {
  ...registrations,
  'leaders lead in one body at a time': runLeaderBodies,
  'messages are received until they are acknowledged': queues['queue, receive']!,
  'dead letters are kept, and nothing else is': queues['queue, dead letters']!,
  'permits are never more than there are, while that changes': runPermits,
  'bounded queues never hold more than they may': queues['queue, bounded']!,
}

it.each(Object.entries(scenarios))(
  'random: %s',
  async (_name, scenario) => {
    await withSeeds(seedsOf(12), (_random, seed) => runWithFaults(seed, scenario))
  },
  600_000,
)
