// oxlint-disable-next-line no-restricted-imports -- each mutant runs in a process of its own
import { execFile } from 'node:child_process'
import { missingChanges } from '@zabra/testkit/mutants'
import { expect, it } from 'vitest'
import { IS_LONG } from './testing/fault-fixture.ts'
import { mutants, type RecipeMutant } from './testing/mutants.ts'

const SEEDS = 60
const folder = new URL('..', import.meta.url).pathname
const vitest = new URL('../../../node_modules/vitest/vitest.mjs', import.meta.url).pathname

interface SuiteRun {
  readonly code: number
  readonly output: string
}

/** Runs the suite of a mutant on the mutated sources. */
function run({ name, suite: [file, test], kind }: RecipeMutant): Promise<SuiteRun> {
  const { ZABRA_SEED: _seed, ...env } = process.env
  const own = {
    ...env,
    ZABRA_SEEDS: String(SEEDS),
    ZABRA_MUTANT: name,
    ...(kind !== undefined && { ZABRA_LOCK_KIND: kind }),
  }
  const args = ['run', `src/${file}`, '-t', test, '--reporter=default', '--testTimeout=100000']
  return new Promise((resolve) => {
    execFile(process.execPath, [vitest, ...args], { cwd: folder, env: own }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : 1, output: stdout + stderr }),
    )
  })
}

const all = Object.values(mutants)
/** Each takes a run of its own, several seconds: all with ZABRA_LONG_TESTS=1, else one. */
const planted = IS_LONG ? all : all.slice(0, 1)

it.each(all)('the mutant of $name applies to the sources', (mutant) => {
  expect(missingChanges(mutant)).toEqual([])
})

it.concurrent.each(planted)(
  'the random suite of $name detects its mutant: $defect',
  async (mutant) => {
    const { code, output } = await run(mutant)
    const seed = /ZABRA_SEED=(\d+)/.exec(output)?.[1]
    expect({ code, seed }, output.slice(-3000)).toEqual({ code: 1, seed: expect.any(String) })
    expect(Number(seed)).toBeLessThanOrEqual(SEEDS)
  },
  120_000,
)
