import type { Client } from '@zabra/client/core'
import { Nemesis, RandomSource } from './nemesis.ts'
import { advanceFor, leftovers, advanceUntilSettled } from './fault-injector.ts'
import { ExclusionChecker } from './exclusion-checker.ts'
import { runPartitioner } from './scenarios/partitions.ts'
import { ManualWorld } from './world.ts'

/** Runs members that join, leave and lose their connections; returns the violations. */
export async function runPartitionScenario(seed: number): Promise<string[]> {
  const prng = new RandomSource(seed)
  const world = await ManualWorld.start()
  const hosts = Array.from({ length: prng.between(3, 9) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const nemesis = new Nemesis(world, prng, hosts)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const waitUntilHealed = async (): Promise<void> => {
    nemesis.stop()
    await sleep(20_000)
  }
  world.clock.after(25_000, 'end of the chaos', () => nemesis.stop())
  const observer = await world.client()
  const context = {
    prng,
    clients,
    names: hosts,
    observer,
    sleep,
    waitUntilHealed,
    createChecker: () => new ExclusionChecker(),
  }
  const wrong = await advanceUntilSettled(world, 200_000, runPartitioner(context)).then(
    (): string[] => [],
    (error: unknown) => [String(error)],
  )
  await advanceFor(world, 1000)
  wrong.push(...(await advanceUntilSettled(world, 10_000, leftovers(world, observer, clients))))
  await world.end()
  return wrong
}
