import type { Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Chaos, Dice } from './testdata/chaos.ts'
import { idle, leftovers, pass } from './testdata/faults.ts'
import { Ledger } from './testdata/ledger.ts'
import type { Play } from './testdata/plays/cast.ts'
import { playBodies } from './testdata/plays/bodies.ts'
import { keepers } from './testdata/plays/keepers.ts'
import { playPermits } from './testdata/plays/permits.ts'
import { queues } from './testdata/plays/queues.ts'
import { seedsOf, withSeeds } from './testdata/stage.ts'
import { World } from './testdata/world.ts'

/** Plays with clients that are cut, silenced and expired at random; nothing may be left behind. */
async function suffer(seed: number, play: Play): Promise<void> {
  const dice = new Dice(seed)
  const world = await World.start()
  const hosts = Array.from({ length: dice.between(3, 9) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const witness = await world.client()
  const chaos = new Chaos(world, dice, hosts)
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
    play({ dice, clients, names: hosts, witness, sleep, calm, ledger: (limit) => new Ledger(limit) }),
  )
  await idle(world, 1000)
  expect(await pass(world, 10_000, leftovers(world, witness, clients))).toEqual([])
  await world.end()
}

const plays: Readonly<Record<string, Play>> = {
  ...keepers,
  'leaders lead in one body at a time': playBodies,
  'messages are received until they are acknowledged': queues['queue, receive']!,
  'dead letters are kept, and nothing else is': queues['queue, dead letters']!,
  'permits are never more than there are, while that changes': playPermits,
  'bounded queues never hold more than they may': queues['queue, bounded']!,
}

it.each(Object.entries(plays))(
  'random: %s',
  async (_name, play) => {
    await withSeeds(seedsOf(12), (_random, seed) => suffer(seed, play))
  },
  600_000,
)
