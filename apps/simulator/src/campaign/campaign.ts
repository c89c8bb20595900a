import { drawPlan, type Feature } from '../simulation/plan.ts'
import { runPlan, type RunReport } from '../simulation/run.ts'
import { Stats } from '../simulation/stats.ts'
import { replayCommand, report, reportViolations } from './report.ts'
import type { Failure, Outcome } from './outcome.ts'

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
  let failed = sum(({ failures }) => failures.length)
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
  const failures: Failure[] = []
  let [eventCount, virtualMs, compared] = [0, 0, 0]
  for (let seed = start; seed < start + seeds; seed++) {
    const plan = drawPlan(seed, options)
    const result = await withoutStacks(() => runPlan(plan))
    stats.merge(result.stats)
    eventCount += result.eventCount
    virtualMs += result.virtualMs
    if (result.violations.length > 0) {
      failures.push({ seed, ...result.violations[0]!, replay: replayCommand(plan, options) })
      await reportViolations(result, options)
    } else if (twice || seed % 50 === 0) {
      compared++
      const difference = await differenceOfSecondRun(result)
      if (difference !== undefined)
        failures.push({
          seed,
          checker: 'determinism',
          message: difference,
          replay: replayCommand(plan, options),
        })
    }
    if (!options.quiet) progress(seed - start + 1, seeds, failures.length)
  }
  return { failures, eventCount, virtualMs, compared, counts: stats.counts, recoveryMs: stats.recoveryMs }
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

/** Runs a plan again. Resolves to how the hash or the event count differs; undefined when both are the same. */
async function differenceOfSecondRun({ plan, hash, eventCount }: RunReport): Promise<string | undefined> {
  const again = await withoutStacks(() => runPlan(plan))
  if (again.hash === hash && again.eventCount === eventCount) return undefined
  const difference = `${eventCount} events (${hash}), then ${again.eventCount} (${again.hash})`
  console.log(`seed ${plan.seed}: VIOLATION determinism: ${difference}`)
  return difference
}

function progress(done: number, all: number, failed: number): void {
  if (process.stdout.isTTY || done % 50 === 0)
    process.stderr.write(`\r${done}/${all} seeds, ${failed} with violations `)
  if (done === all) process.stderr.write('\n')
}
