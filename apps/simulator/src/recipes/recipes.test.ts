import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runScenario } from './run-scenario.ts'

/** How many seeds each recipe is played with; more where there is time. */
const SEEDS = Number(process.env['ZABRA_RECIPE_SEEDS'] ?? 2)

/** Runs the command in a process of its own, as `pnpm sim` does. */
function sim(args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const command = fileURLToPath(new URL('../../bin/sim.mjs', import.meta.url))
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [command, ...args])
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

describe('recipes in a simulated world', () => {
  it(`keep their promises with ${SEEDS} seeds each`, { timeout: 600_000 }, async () => {
    const processes = String(Math.min(4, availableParallelism()))
    const { code, output } = await sim([
      '--recipes',
      'all',
      '--seeds',
      String(SEEDS),
      '--processes',
      processes,
    ])
    expect(output).toMatch(/^simulation: \d+ seeds, 0 violations$/m)
    expect(code, output).toBe(0)
  })

  it('have one history for one seed', async () => {
    const [first, second] = [await runScenario('mutex', 5, 3), await runScenario('mutex', 5, 3)]
    expect([second.hash, second.eventCount, second.violations]).toEqual([first.hash, first.eventCount, []])
  })

  it.each([
    // A member whose session its client had given up counted twice while a server still knew it.
    ['double-barrier', 105, 3],
    ['double-barrier', 118, 1],
    // What a session had made that began and ended while one call waited was taken for somebody else's.
    ['service-discovery', 5024, 3],
    // A lock was never free again whose waiter gave up in the turn in which its request left.
    ['partitioner', 113, 3],
    // An item that had perhaps been taken was taken for another one, which had its name once the folder had been removed.
    ['queue-bounded', 910056, 3],
    // A holder that had stood still took an old answer for a sign of life, and heard of its loss when others had the items.
    ['partitioner', 920047, 1],
    // A keeper gave up for good when its znode was deleted between the look at what it holds and the write.
    ['persistent-node', 930003, 3],
    // A member that left stayed in, since connections broke again and again at its look at its own znode.
    ['partitioner', 935005, 1],
    // A stream of updates ended when three connections in a row broke at its reading.
    ['configuration', 910015, 1],
  ])('keep what %s broke with seed %i and %i servers', async (name, seed, servers) => {
    expect((await runScenario(name, seed, servers)).violations).toEqual([])
  })

  it('are caught when a bug is planted in one', { timeout: 120_000 }, async () => {
    const { code, output } = await sim(['--recipes', 'mutex', '--plants', '--seeds', '5'])
    expect(output).toContain('plants: 1 planted, 0 not found')
    expect(code).toBe(0)
  })

  it('are named when somebody asks for one that does not exist', async () => {
    await expect(runScenario('mutexes', 1, 1)).rejects.toThrow('Expected a recipe among mutex,')
  })
})
