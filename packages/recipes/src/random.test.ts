import type { Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Nemesis, RandomSource } from './testing/nemesis.ts'
import { advanceFor, leftovers, advanceUntilSettled } from './testing/fault-injector.ts'
import { ExclusionChecker } from './testing/exclusion-checker.ts'
import { runLocks, lockKinds } from './testing/scenarios/locks.ts'
import { seedsOf } from './testing/fault-fixture.ts'
import { ManualWorld } from './testing/world.ts'

async function play(seed: number): Promise<void> {
  const prng = new RandomSource(seed)
  const { ZABRA_LOCK_KIND: kind } = process.env
  const asked = Object.entries(lockKinds).filter(([name]) => kind === undefined || name === kind)
  const [way] = prng.pick(asked)
  const world = await ManualWorld.start()
  const hosts = Array.from({ length: prng.between(3, 21) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const observer = await world.client()
  const nemesis = new Nemesis(world, prng, hosts)
  const checker = new ExclusionChecker(lockKinds[way]!.limit)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const context = {
    prng,
    clients,
    names: hosts,
    observer,
    sleep,
    waitUntilHealed: () => sleep(0),
    createChecker: () => checker,
  }
  const done = runLocks(way, context)
  world.clock.after(30_000, 'end of the chaos', () => nemesis.stop())
  const story = (): string =>
    `${way}, ${hosts.length} participants\n${[...nemesis.log, ...checker.history].join('\n')}`
  await advanceUntilSettled(world, 400_000, done)
  nemesis.stop()
  await advanceFor(world, 40_000)
  expect(checker.violations, story()).toEqual([])
  expect(await advanceUntilSettled(world, 10_000, leftovers(world, observer, clients)), story()).toEqual([])
  await world.end()
}

/** `ZABRA_SEED=7` runs one seed; `ZABRA_SEEDS=5000` runs that many; `ZABRA_LOCK_KIND=mutex` runs one kind. */
const seeds = seedsOf(240)
/** One failing seed is enough to detect a mutant; otherwise report several. */
const ENOUGH = process.env['ZABRA_MUTANT'] === undefined ? 5 : 1

it(`random participants under random faults exclude each other, are never stuck and leave nothing (${seeds.length} seeds)`, async () => {
  const failures: string[] = []
  for (const seed of seeds) {
    if (failures.length === ENOUGH) break
    try {
      await play(seed)
    } catch (error) {
      failures.push(`ZABRA_SEED=${seed} fails: ${String(error)}`)
    }
  }
  expect(failures).toEqual([])
}, 600_000)
