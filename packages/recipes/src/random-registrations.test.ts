import { expect, it } from 'vitest'
import { RandomSource, runWithNemesis } from './testing/nemesis.ts'
import type { Scenario } from './testing/scenarios/context.ts'
import { runLeaderBodies } from './testing/scenarios/leader-bodies.ts'
import { registrations } from './testing/scenarios/registrations.ts'
import { runPermits } from './testing/scenarios/permits.ts'
import { queues } from './testing/scenarios/queues.ts'
import { seedsOf, withSeeds } from './testing/fault-fixture.ts'

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
    await withSeeds(seedsOf(6), async (_random, seed) => {
      const recoveryMs = { within: 45_000, after: 1000 }
      const prng = new RandomSource(seed)
      expect((await runWithNemesis(scenario, { prng, maxClients: 9, recoveryMs })).left).toEqual([])
    })
  },
  600_000,
)
