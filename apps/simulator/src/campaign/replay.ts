import { readFileSync } from 'node:fs'
import { drawPlan, type Feature, type Plan } from '../simulation/plan.ts'
import { runPlan } from '../simulation/run.ts'
import { report, reportViolations, writeTrace } from './report.ts'

export interface ReplayOptions {
  readonly seed: number | undefined
  readonly plan: string | undefined
  readonly servers?: number
  readonly minutes?: number
  readonly features?: readonly Feature[]
  readonly shrink: boolean
  readonly trace: string | undefined
}

/** Runs one seed, or one plan from a file. Resolves to 1 when a checker reports a violation. */
export async function replay(options: ReplayOptions): Promise<number> {
  const plan =
    options.plan === undefined
      ? drawPlan(options.seed ?? 1, options)
      : (JSON.parse(readFileSync(options.plan, 'utf8')) as Plan)
  const begun = performance.now()
  const { trace } = options
  const result = await (trace === undefined ? runPlan(plan) : writeTrace(plan, trace))
  const { stats, eventCount, virtualMs, violations } = result
  if (violations.length > 0) await reportViolations(result, options)
  report({ stats, eventCount, virtualMs, seconds: (performance.now() - begun) / 1000, compared: 0 })
  console.log(
    `simulation: 1 seeds, ${violations.length > 0 ? 1 : 0} violations (fingerprint ${result.hash >>> 0})`,
  )
  return violations.length > 0 ? 1 : 0
}
