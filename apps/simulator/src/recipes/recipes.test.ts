import { availableParallelism } from 'node:os'
import { describe, expect, it } from 'vitest'
import { sim } from '../testing/run-sim.ts'
import { runScenario } from './run-scenario.ts'

/** Seeds per recipe; ZABRA_RECIPE_SEEDS overrides it. */
const SEEDS = Number(process.env['ZABRA_RECIPE_SEEDS'] ?? 1)

describe('recipes in the simulation', () => {
  it(`every recipe has no violation in ${SEEDS} seeds`, { timeout: 600_000 }, async () => {
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

  it('the same seed gives the same event hash', async () => {
    const [first, second] = [await runScenario('mutex', 5, 3), await runScenario('mutex', 5, 3)]
    expect([second.hash, second.eventCount, second.violations]).toEqual([first.hash, first.eventCount, []])
  })

  it.each([
    // A member whose client had given up its session counted twice while a server still knew the session.
    ['double-barrier', 105, 3],
    ['double-barrier', 118, 1],
    // A call outlived a session; the node that this session had created was taken for that of another client.
    ['service-discovery', 5024, 3],
    // A lock was never released: its waiter gave up in the same turn in which its request was sent.
    ['partitioner', 113, 3],
    // A message that was possibly taken was confused with a new one of the same name, after the empty folder had been
    // removed.
    ['queue-bounded', 910056, 3],
    // A resumed holder took an old ping reply for a live connection and learned of its loss after others had its items.
    ['partitioner', 920047, 1],
    // A persistent node was given up when its znode was deleted between the read of its data and the write.
    ['persistent-node', 930003, 3],
    // A member that left stayed registered because five connections in a row broke while it looked for its own znode.
    ['partitioner', 935005, 1],
    // A stream of updates ended when three connections in a row broke during its read.
    ['configuration', 910015, 1],
  ])('%s has no violation with regression seed %i and %i servers', async (name, seed, servers) => {
    expect((await runScenario(name, seed, servers)).violations).toEqual([])
  })

  it('a mutant of a recipe is detected', { timeout: 120_000 }, async () => {
    const { code, output } = await sim(['--recipes', 'mutex', '--plants', '--seeds', '5'])
    expect(output).toContain('mutants: 1 planted, 0 not found')
    expect(code).toBe(0)
  })

  it('an unknown recipe is refused with the list of recipes', async () => {
    await expect(runScenario('mutexes', 1, 1)).rejects.toThrow('Expected a recipe among mutex,')
  })
})
