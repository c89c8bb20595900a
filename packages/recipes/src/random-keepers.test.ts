import type { Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Nemesis, RandomSource } from './testing/nemesis.ts'
import { idle, leftovers, pass } from './testing/faults.ts'
import { Ledger } from './testing/ledger.ts'
import type { Scenario } from './testing/scenarios/context.ts'
import { runLeaderBodies } from './testing/scenarios/leader-bodies.ts'
import { keepers } from './testing/scenarios/keepers.ts'
import { runPermits } from './testing/scenarios/permits.ts'
import { queues } from './testing/scenarios/queues.ts'
import { seedsOf, withSeeds } from './testing/stage.ts'
import { ManualWorld } from './testing/world.ts'

/** Plays with clients that are cut, silenced and expired at random; nothing may be left behind. */
async function suffer(seed: number, play: Scenario): Promise<void> {
  const dice = new RandomSource(seed)
  const world = await ManualWorld.start()
  const hosts = Array.from({ length: dice.between(3, 9) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const witness = await world.client()
  const chaos = new Nemesis(world, dice, hosts)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const calm = async (): Promise<void> => {
    chaos.stop()
    await sleep(45_000)
  }
  world.clock.after(30_000, 'end of the chaos', () => chaos.stop())
  await pass(
    world,
    400_000,
    play({
      prng: dice,
      clients,
      names: hosts,
      observer: witness,
      sleep,
      waitUntilHealed: calm,
      ledger: (limit) => new Ledger(limit),
    }),
  )
  await idle(world, 1000)
  expect(await pass(world, 10_000, leftovers(world, witness, clients))).toEqual([])
  await world.end()
}

const plays: Readonly<Record<string, Scenario>> = {
  ...keepers,
  'leaders lead in one body at a time': runLeaderBodies,
  'messages are received until they are acknowledged': queues['queue, receive']!,
  'dead letters are kept, and nothing else is': queues['queue, dead letters']!,
  'permits are never more than there are, while that changes': runPermits,
  'bounded queues never hold more than they may': queues['queue, bounded']!,
}

it.each(Object.entries(plays))(
  'random: %s',
  async (_name, play) => {
    await withSeeds(seedsOf(12), (_random, seed) => suffer(seed, play))
  },
  600_000,
)
