import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { scenarios } from '../../../../packages/recipes/src/testing/scenarios/index.ts'
import { runForParent, runInChild } from '../campaign/child-process.ts'
import { runScenario, serversOf } from './run-scenario.ts'

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  options: {
    recipes: { type: 'string', default: 'all' },
    seeds: { type: 'string', default: '10' },
    start: { type: 'string', default: '1' },
    servers: { type: 'string' },
    processes: { type: 'string', default: '1' },
    trace: { type: 'string' },
    part: { type: 'string' },
  },
})

/** Some seeds of one recipe. */
interface SeedRange {
  readonly name: string
  readonly start: number
  readonly seeds: number
}

/** The result of a part, in a form that can be sent between processes. */
interface Outcome {
  readonly violated: number
  readonly eventCount: number
}

function number(text: string, name: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 0) return value
  throw new RangeError(`Expected --${name} to be a whole number from 0 up, got ${text}`)
}

const serversFor = (seed: number): number =>
  values.servers === undefined ? serversOf(seed) : number(values.servers, 'servers')

/** Runs the seeds of one part and prints their violations. */
async function runPart({ name, start, seeds }: SeedRange): Promise<Outcome> {
  let [violated, eventCount] = [0, 0]
  for (let seed = start; seed < start + seeds; seed++) {
    const servers = serversFor(seed)
    const lines: string[] = []
    const result = await runScenario(
      name,
      seed,
      servers,
      values.trace === undefined
        ? undefined
        : ({ at, host, event, detail }) => lines.push(`${at.toFixed(3)} ${host} ${event} ${detail}`),
    )
    if (values.trace !== undefined) writeFileSync(values.trace, `${lines.join('\n')}\n`)
    eventCount += result.eventCount
    if (result.violations.length === 0) continue
    violated++
    console.log(`\n${name}, seed ${seed}: ${result.violations.length} violations with ${servers} servers`)
    for (const what of result.violations.slice(0, 6)) console.log(`  VIOLATION ${what.slice(0, 1500)}`)
    console.log(`  replay: pnpm sim --recipes ${name} --seeds 1 --start ${seed} --servers ${servers}`)
  }
  return { violated, eventCount }
}

function runPartInChild(part: SeedRange): Promise<Outcome> {
  const servers = values.servers === undefined ? [] : ['--servers', values.servers]
  return runInChild(['--part', JSON.stringify(part), ...servers], `seeds of ${part.name}`)
}

/** Seeds per child process, which bounds its memory. */
const PART = 25

async function campaign(): Promise<number> {
  const known = Object.keys(scenarios)
  const names = values.recipes === 'all' ? known : values.recipes.split(',')
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new RangeError(`Expected --recipes to be all or some of ${known.join(', ')}, got ${unknown}`)
  const [seeds, start] = [number(values.seeds, 'seeds'), number(values.start, 'start')]
  const parts: SeedRange[] = []
  for (let at = 0; at < seeds; at += PART)
    for (const name of names) parts.push({ name, start: start + at, seeds: Math.min(PART, seeds - at) })
  const begun = performance.now()
  const violated = new Map(names.map((name) => [name, 0]))
  let eventCount = 0
  const processes = number(values.processes, 'processes')
  const worker = async (): Promise<void> => {
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      const outcome = await (processes > 1 ? runPartInChild(part) : runPart(part))
      violated.set(part.name, (violated.get(part.name) ?? 0) + outcome.violated)
      eventCount += outcome.eventCount
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, processes) }, worker))
  const seconds = (performance.now() - begun) / 1000
  const all = seeds * names.length
  const sum = [...violated.values()].reduce((total, count) => total + count, 0)
  for (const [name, count] of violated)
    console.log(`  ${name.padEnd(20)} ${seeds} seeds, ${count} violations`)
  console.log(`${eventCount} events in ${seconds.toFixed(1)} s, ${(all / seconds).toFixed(2)} seeds a second`)
  console.log(`simulation: ${all} seeds, ${sum} violations`)
  return sum
}

if (values.part !== undefined) await runForParent(() => runPart(JSON.parse(values.part!) as SeedRange))
else process.exitCode = (await campaign()) > 0 ? 1 : 0
