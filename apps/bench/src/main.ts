import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { cases, sets } from './cases/index.ts'
import type { Case, BenchOptions } from './cases/case.ts'
import { isNoisy, formatValue, type Figure, type Note } from './figures.ts'
import { machine, measureUtilization, watchStealTime } from './machine.ts'
import { apacheMissing, peerKinds, startPeer, versionOf, type PeerKind } from './peers.ts'
import { html, markdown, type Run } from './report.ts'
import type { Series } from './series.ts'

interface Flags extends BenchOptions {
  readonly rounds: number
  readonly only?: PeerKind
  readonly out?: string
  readonly nodeFlag?: string[]
}

const number = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('Expected a number above 0.')
  return value
}

function pattern(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch (error) {
    throw new InvalidArgumentError(`Expected a regular expression. ${(error as Error).message}.`)
  }
}

const program = new Command('bench')
  .description(
    'Measures Zabra beside Apache ZooKeeper on this machine, interleaved, each time on fresh servers',
  )
  .addArgument(new Argument('[names...]', `cases or sets (${Object.keys(sets).join(', ')})`).default(['all']))
  .option('--rounds <n>', 'rounds; medians are taken over them', number, 3)
  .option('--seconds <n>', 'seconds of counting for each load', number, 5)
  .option('--connections <n>', 'connections of a load that is about throughput', number, 60)
  .option('--depth <n>', 'requests in flight on each', number, 32)
  .option('--size <bytes>', 'bytes of data in a znode', number, 100)
  .option('--processes <n>', 'load generator processes', number, 2)
  .option('--scale <share>', 'scales the large cases down, for a quick look', number, 1)
  .option('--minutes <n>', 'minutes of the long run (endurance)', number, 10)
  .option('--rows <pattern>', 'a regular expression; client-holds measures the rows that match it', pattern)
  .addOption(new Option('--only <peer>', 'measures one peer alone').choices([...peerKinds]))
  .option('--out <folder>', 'writes bench.json and bench.html there')
  .option('--node-flag <flag...>', 'flags for the Node process of a Zabra server, such as --cpu-prof')
  .addHelpText(
    'after',
    `\nCases:\n${cases.map(({ name, about }) => `  ${name.padEnd(16)} ${about}`).join('\n')}`,
  )
  .parse()
const { rounds, only, out, nodeFlag, ...options } = program.opts<Flags>()
const chosen = choose(program.processedArgs[0] as string[])

function choose(names: readonly string[]): Case[] {
  const wanted = names.flatMap((name) => sets[name] ?? [name])
  const unknown = wanted.find((name) => !cases.some((one) => one.name === name))
  if (unknown !== undefined)
    program.error(
      `Expected a case or a set, got ${unknown}. There are: ${[...Object.keys(sets), ...sets['all']!].join(', ')}`,
    )
  return cases.filter(({ name }) => wanted.includes(name))
}

const missing = only === 'zabra' ? undefined : apacheMissing()
const peers = peerKinds.filter(
  (kind) => (only === undefined || only === kind) && !(kind === 'apache' && missing),
)
const figures = new Map<string, Figure>()
const series: Series[] = []
const warnings: string[] = []
const versions: Record<string, string> = {}

const noteOf =
  (one: Case, kind: PeerKind): Note =>
  (given, value) => {
    let figure = figures.get(given.name)
    if (!figure)
      figures.set(given.name, (figure = { ...given, caseName: one.name, values: { zabra: [], apache: [] } }))
    figure.values[kind].push(value)
    console.log(`  ${kind.padEnd(7)} ${given.name.padEnd(44)} ${formatValue(value)} ${given.unit}`)
  }

async function measure(one: Case, kind: PeerKind): Promise<void> {
  await one.run({
    options,
    kind,
    record: (name, unit, points) => void series.push({ name, caseName: one.name, unit, kind, points }),
    figures: [...figures.values()],
    note: noteOf(one, kind),
    start: async (options = {}) => {
      const peer = await startPeer(kind, {
        ...options,
        nodeFlags: [...(nodeFlag ?? []), ...(options.nodeFlags ?? [])],
      })
      versions[kind] ??= await versionOf(peer)
      return peer
    },
  })
}

/** Alternates the order of the peers from round to round, unless the case fixes it. */
function order({ first }: Case, round: number): readonly PeerKind[] {
  if (first !== undefined) return peers.toSorted((a, b) => Number(b === first) - Number(a === first))
  return round % 2 === 1 ? peers : peers.toReversed()
}

const here = machine()
console.log(Object.values(here).join(', '))
if (missing) console.log(`Without Apache ZooKeeper: ${missing}`)
const utilization = await measureUtilization(1000)
if (utilization > 0.1)
  warnings.push(`the machine was ${Math.round(utilization * 100)} % busy before the first case`)
const stealTime = watchStealTime()
for (let round = 1; round <= rounds; round++) {
  console.log(`Round ${round} of ${rounds}`)
  for (const one of chosen) {
    if (one.isLong && round > 1) continue
    console.log(` ${one.name}: ${one.about}`)
    for (const kind of order(one, round))
      if (one.only === undefined || one.only === kind) await measure(one, kind)
  }
}
if (stealTime() > 0.02)
  warnings.push(`the hypervisor stole ${Math.round(stealTime() * 100)} % of the processor time`)
const noisy = [...figures.values()].filter(isNoisy).map(({ name }) => name)
if (noisy.length > 0) warnings.push(`noisy figures: ${noisy.join(', ')}`)

const run: Run = {
  date: new Date().toISOString().slice(0, 10),
  machine: here,
  versions,
  options: { ...options },
  rounds,
  warnings: warnings,
  figures: [...figures.values()],
  series,
}
console.log(`\n${markdown(run)}`)
for (const warning of warnings) console.log(`\nNoisy: ${warning}`)
if (out !== undefined) {
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, 'bench.json'), `${JSON.stringify(run, null, 2)}\n`)
  writeFileSync(join(out, 'bench.html'), html(run))
  console.log(`\nWritten: ${join(out, 'bench.json')}, ${join(out, 'bench.html')}`)
}
