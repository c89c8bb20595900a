import type { Client } from '@zabra/client/core'
import { Nemesis, RandomSource } from './nemesis.ts'
import { idle, leftovers, pass } from './faults.ts'
import { Ledger } from './ledger.ts'
import { runPartitioner as play } from './scenarios/partitions.ts'
import { ManualWorld } from './world.ts'

/** Members that come, go and lose their connections; gives what went wrong. */
export async function runPartitionScenario(seed: number): Promise<string[]> {
  const dice = new RandomSource(seed)
  const world = await ManualWorld.start()
  const hosts = Array.from({ length: dice.between(3, 9) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const chaos = new Nemesis(world, dice, hosts)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const calm = async (): Promise<void> => {
    chaos.stop()
    await sleep(20_000)
  }
  world.clock.after(25_000, 'end of the chaos', () => chaos.stop())
  const witness = await world.client()
  const cast = {
    prng: dice,
    clients,
    names: hosts,
    observer: witness,
    sleep,
    waitUntilHealed: calm,
    ledger: () => new Ledger(),
  }
  const wrong = await pass(world, 200_000, play(cast)).then(
    (): string[] => [],
    (error: unknown) => [String(error)],
  )
  await idle(world, 1000)
  wrong.push(...(await pass(world, 10_000, leftovers(world, witness, clients))))
  await world.end()
  return wrong
}
