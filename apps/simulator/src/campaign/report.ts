import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Feature, Plan } from '../simulation/plan.ts'
import { runPlan, type RunReport } from '../simulation/run.ts'
import { shrink } from '../simulation/shrink.ts'
import type { Stats } from '../simulation/stats.ts'

export interface ReportOptions {
  readonly servers?: number
  readonly minutes?: number
  readonly features?: readonly Feature[]
  readonly shrink: boolean
  /** The file that the plan comes from; undefined for a plan that is drawn from its seed. */
  readonly plan?: string | undefined
}

/** Returns options of plans as on the command line. */
export function optionsText({
  servers,
  minutes,
  features,
}: Pick<ReportOptions, 'servers' | 'minutes' | 'features'>): string {
  const given = Object.entries({ servers, minutes, with: features?.join() })
  return given.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${value}`])).join(' ')
}

/** Returns the command that plays a plan. */
const commandOf = (plan: string): string =>
  ['pnpm sim', plan, process.env['ZABRA_SIM_BUNDLED'] ?? ''].filter((part) => part !== '').join(' ')

/** Returns the command that replays a run. */
export const replayCommand = ({ seed }: Plan, options: Omit<ReportOptions, 'shrink'>): string =>
  commandOf(
    options.plan === undefined
      ? `--seed ${seed} ${optionsText(options)}`.trimEnd()
      : `--plan ${options.plan}`,
  )

/** Prints violations and the command that replays them, writes the trace, and shrinks the plan on request. */
export async function reportViolations(result: RunReport, options: ReportOptions): Promise<void> {
  const { plan, violations } = result
  console.log(
    `\nseed ${plan.seed}: ${violations.length} violations with ${plan.servers} servers, ${plan.faults.length} faults, ${plan.clients.length} clients`,
  )
  for (const { checker, message } of violations.slice(0, 6))
    console.log(`  VIOLATION ${checker}: ${message.slice(0, 1500)}`)
  if (violations.length > 6) console.log(`  and ${violations.length - 6} more`)
  console.log(`  replay: ${replayCommand(plan, options)} --trace trace.txt`)
  const folder = join(tmpdir(), 'zabra-sim')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `seed-${plan.seed}-${plan.servers}.txt`)
  await writeTrace(plan, file)
  console.log(`  trace: ${file}`)
  if (!options.shrink) return
  const smaller = await shrink(plan, violations[0]!.checker)
  const planFile = join(folder, `seed-${plan.seed}-${plan.servers}.plan.json`)
  writeFileSync(planFile, `${JSON.stringify(smaller, undefined, 1)}\n`)
  console.log(
    `  shrunk to ${smaller.servers} servers, ${smaller.faults.length} faults, ${smaller.clients.length} clients, ${smaller.loadMs} ms: ${commandOf(`--plan ${planFile}`)} --trace trace.txt`,
  )
}

/** Runs a plan and writes its trace to a file. */
export async function writeTrace(plan: Plan, file: string): Promise<RunReport> {
  const lines: string[] = []
  const result = await runPlan(plan, {
    onTrace: ({ at, host, event, detail }) => lines.push(`${at.toFixed(3)} ${host} ${event} ${detail}`),
    onLog: ({ at, host, level, facts, sentence }) =>
      lines.push(`${at.toFixed(3)} ${host} [${level}] ${sentence} ${JSON.stringify(facts, plain)}`),
  })
  for (const { checker, message } of result.violations) lines.push(`VIOLATION ${checker}: ${message}`)
  writeFileSync(file, `${lines.join('\n')}\n`)
  return result
}

const plain = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString(16) : value)

export function report(sums: {
  stats: Stats
  eventCount: number
  virtualMs: number
  seconds: number
  compared: number
}): void {
  const { stats, eventCount, virtualMs, seconds, compared } = sums
  const rows = Object.entries(stats.counts).sort(([a], [b]) => (a < b ? -1 : 1))
  const width = Math.max(...rows.map(([name]) => name.length), 20)
  console.log('\nWhat happened:')
  for (const [name, count] of rows) console.log(`  ${name.padEnd(width)} ${count}`)
  console.log(`  ${'longest recovery, ms'.padEnd(width)} ${stats.recoveryMs.toFixed(0)}`)
  console.log(`  ${'run twice'.padEnd(width)} ${compared}`)
  console.log(
    `${eventCount} events in ${seconds.toFixed(1)} s, ${Math.round(eventCount / seconds)} a second; ${(virtualMs / 60_000).toFixed(1)} minutes of the world, ${Math.round(virtualMs / 1000 / seconds)} times real time`,
  )
}
