// oxlint-disable-next-line no-restricted-imports -- each bug is planted in a process of its own
import { execFile } from 'node:child_process'
import { expect, it } from 'vitest'
import { mutants, type RecipeMutant } from './testing/mutants.ts'

const SEEDS = 60
const folder = new URL('..', import.meta.url).pathname
const vitest = new URL('../../../node_modules/vitest/vitest.mjs', import.meta.url).pathname

interface Ran {
  readonly code: number
  readonly output: string
}

/** Runs the suite of a plant, with it or without. */
function play(plant: RecipeMutant, name: string | undefined): Promise<Ran> {
  const { ZABRA_SEED: _seed, ...env } = process.env
  const [file, test] = plant.suite
  const own = {
    ...env,
    ZABRA_SEEDS: String(SEEDS),
    ...(name !== undefined && { ZABRA_PLANT: name }),
    ...(plant.kind !== undefined && { ZABRA_WAY: plant.kind }),
  }
  const args = ['run', `src/${file}`, '-t', test, '--reporter=default', '--testTimeout=100000']
  return new Promise((resolve) => {
    execFile(process.execPath, [vitest, ...args], { cwd: folder, env: own }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : 1, output: stdout + stderr }),
    )
  })
}

it.concurrent.each(Object.entries(mutants))(
  'the random suite of %s finds a bug that was planted in it',
  async (name, plant) => {
    const { code, output } = await play(plant, name)
    const seed = /ZABRA_SEED=(\d+)/.exec(output)?.[1]
    expect({ code, seed }, output.slice(-3000)).toEqual({ code: 1, seed: expect.any(String) })
    expect(Number(seed)).toBeLessThanOrEqual(SEEDS)
  },
  120_000,
)
