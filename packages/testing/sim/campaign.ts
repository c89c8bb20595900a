import { planOf } from '../src/simulation/plan.ts'
import { runPlan, type Report } from '../src/simulation/run.ts'
import { Tally } from '../src/simulation/tally.ts'
import { report, tellViolations } from './report.ts'
import { guarded } from './guard.ts'

export interface CampaignOptions {
  readonly seeds: number
  readonly start: number
  readonly servers?: number
  readonly minutes?: number
  readonly shrink: boolean
  /** Plays every seed twice and compares the histories; else one of fifty. */
  readonly twice: boolean
  readonly quiet: boolean
}

/** Plays many seeds and prints what came of it. Resolves to the number of seeds with violations. */
export async function campaign(options: CampaignOptions): Promise<number> {
  const { seeds, start, twice } = options
  const tally = new Tally()
  const begun = performance.now()
  let [failed, steps, virtualMs, compared] = [0, 0, 0, 0]
  for (let seed = start; seed < start + seeds; seed++) {
    const plan = planOf(seed, options)
    const result = await guarded(plan, () => runPlan(plan))
    tally.merge(result.tally)
    steps += result.steps
    virtualMs += result.virtualMs
    if (result.violations.length > 0) {
      failed++
      await tellViolations(result, options)
    } else if (twice || seed % 50 === 0) {
      compared++
      if (!(await isSame(result))) failed++
    }
    if (!options.quiet) progress(seed - start + 1, seeds, failed)
  }
  report({ tally, steps, virtualMs, seconds: (performance.now() - begun) / 1000, compared })
  // Runs in which nothing happens prove nothing.
  if ((tally.counts['writes'] ?? 0) < seeds * 100) {
    failed++
    console.log(
      `VIOLATION vacuous: only ${tally.counts['writes'] ?? 0} writes were answered in ${seeds} runs`,
    )
  }
  console.log(`simulation: ${seeds} seeds, ${failed} violations`)
  return failed
}

/** Whether a plan gives the same history a second time. */
async function isSame({ plan, hash, steps }: Report): Promise<boolean> {
  const again = await runPlan(plan)
  if (again.hash === hash && again.steps === steps) return true
  console.log(
    `seed ${plan.seed}: VIOLATION determinism: ${steps} events (${hash}), then ${again.steps} (${again.hash})`,
  )
  return false
}

function progress(done: number, all: number, failed: number): void {
  if (process.stdout.isTTY || done % 50 === 0)
    process.stderr.write(`\r${done}/${all} seeds, ${failed} with violations `)
  if (done === all) process.stderr.write('\n')
}
