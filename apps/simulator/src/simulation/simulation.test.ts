import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { describe, expect, it } from 'vitest'
import { sim } from '../testing/run-sim.ts'
import { drawPlan } from './plan.ts'
import { runPlan } from './run.ts'
import { shrink } from './shrink.ts'

/** Seeds beyond the listed ones; ZABRA_SIM_SEEDS overrides it. */
const SEEDS = Number(process.env['ZABRA_SIM_SEEDS'] ?? 11)

const line = (seed: number, servers: number): string => `pnpm sim --seed ${seed} --servers ${servers}`

describe('the simulation of ensembles', () => {
  it.each([
    [1, 1],
    [2, 1],
    [3, 1],
    [1, 3],
    [2, 3],
    [1, 5],
  ])('seed %i with %i servers has no violation', async (seed, servers) => {
    const { violations, stats } = await runPlan(drawPlan(seed, { servers, minutes: 0.05 }))
    expect(violations, line(seed, servers)).toEqual([])
    expect(stats.counts['writes'], line(seed, servers)).toBeGreaterThan(0)
  })

  it.each([
    ['accepts no epoch of a leader that this server does not follow', 2305952],
    ['is no quorum after any reconfiguration', 2301104],
  ])('a stranger with the address of a server %s (seed %i)', async (_, seed) => {
    const { violations, stats } = await runPlan(drawPlan(seed, { minutes: 0.05 }))
    expect(violations).toEqual([])
    expect(stats.counts['writes']).toBeGreaterThan(0)
  })

  it('the first write to ready servers does not wait for a stalled disk (seed 2307431)', async () => {
    const { violations } = await runPlan(drawPlan(2307431, { minutes: 0.05 }))
    expect(violations).toEqual([])
  })

  it(`${SEEDS} more seeds have no violation`, { timeout: 600_000 }, async () => {
    const processes = String(Math.min(4, availableParallelism()))
    const args = ['--seeds', String(SEEDS), '--start', '1001', '--minutes', '0.05', '--processes', processes]
    const { code, output } = await sim([...args, '--quiet'])
    expect(output).toContain(`simulation: ${SEEDS} seeds, 0 violations`)
    expect(code).toBe(0)
  })

  it('epochs that end after 150 transactions cause no violation', { timeout: 600_000 }, async () => {
    const args = ['--variant', 'short-epochs', '--seeds', '2', '--start', '1', '--servers', '3']
    const { code, output } = await sim([...args, '--minutes', '0.05', '--quiet'])
    expect(output).toContain('simulation: 2 seeds, 0 violations')
    expect(Number(/epochs used up +(\d+)/.exec(output)?.[1])).toBeGreaterThan(3)
    expect(code).toBe(0)
  })

  it('transfers of leadership to chosen voters cause no violation', { timeout: 600_000 }, async () => {
    const args = ['--with', 'transfers', '--seeds', '2', '--start', '1', '--servers', '5']
    const { code, output } = await sim([...args, '--minutes', '0.2', '--quiet'])
    expect(output).toContain('simulation: 2 seeds, 0 violations')
    for (const what of ['transactions for successors', 'transfers interrupted'])
      expect(Number(new RegExp(`${what} +(\\d+)`).exec(output)?.[1]), what).toBeGreaterThan(3)
    expect(code).toBe(0)
  })

  it('hierarchical quorums, read-only servers and observer masters cause no violation', async () => {
    const args = ['--with', 'groups,read-only,observer-masters', '--seeds', '2', '--start', '5']
    const { code, output } = await sim([...args, '--servers', '5', '--minutes', '0.05', '--quiet'])
    expect(output).toContain('simulation: 2 seeds, 0 violations')
    expect(output).toMatch(/ensembles with groups +2/)
    for (const what of ['read-only answers', 'refused as read-only', 'informs by followers'])
      expect(Number(new RegExp(`${what} +(\\d+)`).exec(output)?.[1]), what).toBeGreaterThan(3)
    expect(code).toBe(0)
  })

  it('feature levels are finalized among mixed releases without a violation', async () => {
    const args = ['--with', 'finalize', '--seeds', '2', '--start', '1', '--servers', '3', '--minutes', '0.05']
    const { code, output } = await sim([...args, '--quiet'])
    expect(output).toContain('simulation: 2 seeds, 0 violations')
    for (const what of ['finalize answered with 200', 'finalize answered with 409', 'install'])
      expect(Number(new RegExp(`${what} +(\\d+)`).exec(output)?.[1]), what).toBeGreaterThan(0)
    expect(code).toBe(0)
  })

  it('a violation prints its replay command and writes a trace', async () => {
    const args = ['--plant', 'version-ignored', '--seeds', '1', '--start', '1', '--servers', '1']
    const { code, output } = await sim([...args, '--minutes', '0.1', '--quiet'])
    expect(code).toBe(1)
    expect(output).toContain('VIOLATION results: ')
    const replay = 'pnpm sim --seed 1 --servers 1 --minutes 0.1 --plant version-ignored'
    expect(output).toContain(`replay: ${replay} --trace trace.txt`)
    const trace = readFileSync(/trace: (.+)/.exec(output)![1]!, 'utf8')
    expect(trace).toMatch(/^\d+\.\d{3} s1 start $/m)
    expect(trace).toMatch(/^VIOLATION results: /m)
  })

  it('shrink returns a smaller plan that still fails', async () => {
    const plan = drawPlan(1, { servers: 1, minutes: 0.02 })
    const broken = { ...plan, network: { ...plan.network, delayMs: 60_000 } }
    const { violations } = await runPlan(broken)
    const smaller = await shrink(broken, violations[0]!.checker, 12)
    expect(smaller.clients.length + smaller.faults.length).toBeLessThan(
      plan.clients.length + plan.faults.length,
    )
  })

  it.each([
    [11, 1],
    [12, 3],
  ])('seed %i with %i servers gives the same event hash twice', async (seed, servers) => {
    const plan = drawPlan(seed, { servers, minutes: 0.05 })
    const [first, second] = [await runPlan(plan), await runPlan(plan)]
    expect([second.hash, second.eventCount], line(seed, servers)).toEqual([first.hash, first.eventCount])
  })

  it('another seed gives another event hash', async () => {
    const [first, second] = [
      await runPlan(drawPlan(1, { servers: 1, minutes: 0.02 })),
      await runPlan(drawPlan(2, { servers: 1, minutes: 0.02 })),
    ]
    expect(second.hash).not.toBe(first.hash)
  })

  it('shrink returns a plan without violations unchanged', async () => {
    const plan = drawPlan(1, { servers: 1, minutes: 0.02 })
    expect(await shrink(plan, 'reads', 2)).toBe(plan)
  })
})
