import { expect, it } from 'vitest'
import { RandomSource, runWithNemesis } from './testing/nemesis.ts'
import { ExclusionChecker } from './testing/exclusion-checker.ts'
import { runLocks, lockKinds } from './testing/scenarios/locks.ts'
import { seedsOf } from './testing/fault-fixture.ts'

async function play(seed: number): Promise<void> {
  const prng = new RandomSource(seed)
  const { ZABRA_LOCK_KIND: kind } = process.env
  const asked = Object.entries(lockKinds).filter(([name]) => kind === undefined || name === kind)
  const [way] = prng.pick(asked)
  const checker = new ExclusionChecker(lockKinds[way]!.limit)
  const { left, log, clients } = await runWithNemesis(
    async (context) => void (await runLocks(way, context)),
    {
      prng,
      maxClients: 21,
      recoveryMs: { within: 0, after: 40_000 },
      createChecker: () => checker,
    },
  )
  const story = `${way}, ${clients} participants\n${[...log, ...checker.history].join('\n')}`
  expect({ violations: checker.violations, left }, story).toEqual({ violations: [], left: [] })
}

/** `ZABRA_SEED=7` runs one seed; `ZABRA_SEEDS=5000` runs that many; `ZABRA_LOCK_KIND=mutex` runs one kind. */
const seeds = seedsOf(54)
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
