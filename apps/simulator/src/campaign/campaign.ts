import { drawPlan, type Feature } from '../simulation/plan.ts'
import { runPlan, type RunReport } from '../simulation/run.ts'
import { Stats } from '../simulation/stats.ts'
import { report, reportViolations } from './report.ts'
import { catchUnhandledRejections } from './unhandled-rejections.ts'

export interface Range {
  readonly seeds: number
  readonly start: number
}

export interface CampaignOptions extends Range {
  readonly servers?: number
  readonly minutes?: number
  readonly features?: readonly Feature[]
  readonly shrink: boolean
  /** Runs every seed twice and compares the runs; otherwise one seed in fifty. */
  readonly twice: boolean
  readonly quiet: boolean
}

/** The result of some seeds, in a form that can be sent between processes. */
export interface Outcome {
  /** Number of seeds with violations. */
  readonly failed: number
  readonly eventCount: number
  readonly virtualMs: number
  /** Number of seeds that were run twice. */
  readonly compared: number
  readonly counts: Readonly<Record<string, number>>
  readonly recoveryMs: number
}

/** Runs many seeds and prints a summary. Resolves to the number of seeds with violations. */
export async function campaign(
  options: CampaignOptions,
  runAll: (options: CampaignOptions) => Promise<readonly Outcome[]>,
): Promise<number> {
  const { seeds } = options
  const begun = performance.now()
  const outcomes = await runAll(options)
  const sum = (of: (outcome: Outcome) => number): number =>
    outcomes.reduce((sum, outcome) => sum + of(outcome), 0)
  const stats = new Stats()
  for (const { counts, recoveryMs } of outcomes) stats.merge({ counts, recoveryMs })
  let failed = sum((outcome) => outcome.failed)
  report({
    stats,
    eventCount: sum(({ eventCount }) => eventCount),
    virtualMs: sum(({ virtualMs }) => virtualMs),
    seconds: (performance.now() - begun) / 1000,
    compared: sum(({ compared }) => compared),
  })
  // A run in which nothing happens proves nothing.
  const { writes = 0 } = stats.counts
  if (writes < seeds * 100) {
    failed++
    console.log(`VIOLATION vacuous: only ${writes} writes were answered in ${seeds} runs`)
  }
  console.log(`simulation: ${seeds} seeds, ${failed} violations`)
  return failed
}

/** Runs seeds one after another in this process and prints their violations. */
export async function runSeeds(options: CampaignOptions): Promise<Outcome> {
  const { seeds, start, twice } = options
  const stats = new Stats()
  let [failed, eventCount, virtualMs, compared] = [0, 0, 0, 0]
  for (let seed = start; seed < start + seeds; seed++) {
    const plan = drawPlan(seed, options)
    const result = await withoutStacks(() => catchUnhandledRejections(() => runPlan(plan)))
    stats.merge(result.stats)
    eventCount += result.eventCount
    virtualMs += result.virtualMs
    if (result.violations.length > 0) {
      failed++
      await reportViolations(result, options)
    } else if (twice || seed % 50 === 0) {
      compared++
      if (!(await isReproducible(result))) failed++
    }
    if (!options.quiet) progress(seed - start + 1, seeds, failed)
  }
  return { failed, eventCount, virtualMs, compared, counts: stats.counts, recoveryMs: stats.recoveryMs }
}

/** Runs a seed without stacks in errors, which cost more than the errors: a replay of the seed has them. */
async function withoutStacks<T>(run: () => Promise<T>): Promise<T> {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return await run()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** Returns whether a second run of the plan has the same hash and event count. */
async function isReproducible({ plan, hash, eventCount }: RunReport): Promise<boolean> {
  const again = await runPlan(plan)
  if (again.hash === hash && again.eventCount === eventCount) return true
  console.log(
    `seed ${plan.seed}: VIOLATION determinism: ${eventCount} events (${hash}), then ${again.eventCount} (${again.hash})`,
  )
  return false
}

function progress(done: number, all: number, failed: number): void {
  if (process.stdout.isTTY || done % 50 === 0)
    process.stderr.write(`\r${done}/${all} seeds, ${failed} with violations `)
  if (done === all) process.stderr.write('\n')
}
