import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Command } from 'commander'
import { median, spread } from '../figures.ts'
import { apacheMissing, startPeer } from '../peers.ts'

const options = new Command('bench-recipes')
  .description("Measures the recipes of Zabra beside kazoo's and Curator's, against one server, interleaved")
  .option('--rounds <n>', 'rounds; medians are taken over them', Number, 3)
  .option('--seconds <n>', 'seconds of each measurement of locks', Number, 3)
  .option('--items <n>', 'items that go through the queue', Number, 1000)
  .option('--nodes <n>', 'znodes of the cache', Number, 100_000)
  .option('--server <name>', 'apache or zabra', 'apache')
  .option('--json <file>', 'where to write the figures')
  .parse()
  .opts<{
    rounds: number
    seconds: number
    items: number
    nodes: number
    server: string
    json?: string
  }>()

const run = promisify(execFile)
const jar = (name: string): string => `/usr/share/java/${name}.jar`
const jars = ['curator-recipes', 'curator-framework', 'curator-client', 'zookeeper', 'slf4j-nop'].map(jar)
const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const python = '/usr/bin/python3'

/** The command that starts a library's program. */
type Start = readonly [program: string, ...args: string[]]

async function curator(folder: string): Promise<Start | string> {
  const absent = jars.filter((file) => !existsSync(file))
  if (absent.length > 0) return `Curator is left out: ${absent.join(', ')} absent`
  await run('javac', ['-nowarn', '-d', folder, '-cp', jars.join(':'), here('../java/Recipes.java')])
  return ['java', '-Xmx2g', '-cp', [folder, ...jars].join(':'), 'Recipes']
}

async function kazoo(): Promise<Start | string> {
  try {
    await run(python, ['-c', 'import kazoo'])
    return [python, here('../python/recipes.py')]
  } catch {
    return 'kazoo is left out: it does not load'
  }
}

interface Work {
  readonly name: string
  readonly args: (path: string) => readonly string[]
  readonly better: 'more' | 'less'
}

const works: readonly Work[] = [
  ...[1, 10, 100].map((contenders) => ({
    name: `lock, ${contenders} contender${contenders === 1 ? '' : 's'}, turns a second`,
    args: (path: string) => ['locks', String(contenders), path, String(options.seconds)],
    better: 'more' as const,
  })),
  { name: 'election, ms to the next leader', args: (path) => ['election', '9', path], better: 'less' },
  { name: 'queue, items a second', args: (path) => ['queue', String(options.items), path], better: 'more' },
  {
    name: 'queue, taken at most once, items a second',
    args: (path) => ['take', String(options.items), path],
    better: 'more',
  },
  { name: `cache of ${options.nodes} znodes, ms`, args: () => ['cache', '1', '/tree'], better: 'less' },
]

/** Runs one measurement in a process of its own. Resolves to NaN, and prints the reason, when it fails. */
async function measure(
  [program, ...first]: Start,
  address: string,
  args: readonly string[],
): Promise<number> {
  try {
    const { stdout } = await run(program, [...first, address, ...args], { timeout: 180_000 })
    return Number(/figure (\S+)/.exec(stdout)?.[1] ?? Number.NaN)
  } catch (error) {
    console.error(`${program} ${args.join(' ')}: ${String(error).slice(0, 500)}`)
    return Number.NaN
  }
}

const missing = options.server === 'apache' ? apacheMissing() : undefined
if (missing !== undefined) throw new Error(missing)
const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-recipes-'))
const server = await startPeer(options.server === 'apache' ? 'apache' : 'zabra')
try {
  const address = server.servers
  const own: Start = [process.execPath, here('recipes/worker.js')]
  const libraries = new Map<string, Start>([['zabra', own]])
  for (const [name, start] of [
    ['kazoo', await kazoo()],
    ['curator', await curator(folder)],
  ] as const) {
    if (typeof start === 'string') console.log(start)
    else libraries.set(name, start)
  }
  await measure(own, address, ['fill', String(options.nodes), '/tree'])
  const figures = new Map<string, number[]>()
  for (let round = 0; round < options.rounds; round++) {
    for (const { name, args } of works) {
      for (const [library, start] of libraries) {
        const figure = await measure(start, address, args(`/${library}-${figures.size}-${round}`))
        const key = `${name}|${library}`
        figures.set(key, [...(figures.get(key) ?? []), figure])
      }
    }
  }
  report([...libraries.keys()], figures)
} finally {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}

function report(libraries: readonly string[], figures: ReadonlyMap<string, readonly number[]>): void {
  const rows = works.map(({ name, better }) => {
    const medians = Object.fromEntries(
      libraries.map((each) => [each, median(figures.get(`${name}|${each}`)!)]),
    )
    const noisy = libraries.filter((each) => spread(figures.get(`${name}|${each}`)!) > 0.15)
    return { name, better, medians, noisy }
  })
  const digits = (value: number): string => (value < 100 ? value.toFixed(1) : value.toFixed(0))
  const line = (cells: readonly string[]): string =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(42) : cell.padStart(12))).join(' ')
  console.log(`\nAgainst ${options.server}, medians of ${options.rounds} rounds\n`)
  console.log(line(['', ...libraries, 'noisy']))
  for (const { name, medians, noisy } of rows) {
    console.log(line([name, ...libraries.map((each) => digits(medians[each]!)), noisy.join(',') || '-']))
  }
  if (options.json !== undefined) {
    const all = Object.fromEntries([...figures].map(([key, values]) => [key, values]))
    writeFileSync(options.json, `${JSON.stringify({ server: options.server, rows, all }, undefined, 2)}\n`)
  }
}
