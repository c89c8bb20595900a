import type { Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Nemesis, RandomSource } from './testing/nemesis.ts'
import { idle, leftovers, pass } from './testing/faults.ts'
import { Ledger } from './testing/ledger.ts'
import { runLocks, lockKinds } from './testing/scenarios/locks.ts'
import { seedsOf } from './testing/stage.ts'
import { ManualWorld } from './testing/world.ts'

async function play(seed: number): Promise<void> {
  const dice = new RandomSource(seed)
  const { ZABRA_LOCK_KIND: kind } = process.env
  const asked = Object.entries(lockKinds).filter(([name]) => kind === undefined || name === kind)
  const [way] = dice.pick(asked)
  const world = await ManualWorld.start()
  const hosts = Array.from({ length: dice.between(3, 21) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const witness = await world.client()
  const chaos = new Nemesis(world, dice, hosts)
  const ledger = new Ledger(lockKinds[way]!.limit)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const cast = {
    prng: dice,
    clients,
    names: hosts,
    observer: witness,
    sleep,
    waitUntilHealed: () => sleep(0),
    ledger: () => ledger,
  }
  const done = runLocks(way, cast)
  world.clock.after(30_000, 'end of the chaos', () => chaos.stop())
  const story = (): string =>
    `${way}, ${hosts.length} participants\n${[...chaos.log, ...ledger.history].join('\n')}`
  await pass(world, 400_000, done)
  chaos.stop()
  await idle(world, 40_000)
  expect(ledger.wrong, story()).toEqual([])
  expect(await pass(world, 10_000, leftovers(world, witness, clients)), story()).toEqual([])
  await world.end()
}

/** `ZABRA_SEED=7` plays one; `ZABRA_SEEDS=5000` plays so many; `ZABRA_LOCK_KIND=mutex` plays only that. */
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
