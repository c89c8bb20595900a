import { spawn, type ChildProcess } from 'node:child_process'
import { createRequire } from 'node:module'
import { Histogram } from '../../cli/src/bench/histogram.ts'

/** What `zabra bench` tells of one kind of operation; times in microseconds. */
export interface LoadResult {
  readonly name: string
  readonly operations: number
  readonly seconds: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** How many requests took how long. */
  readonly latency: Latency
}

type Latency = ReturnType<Histogram['export']>

interface BenchOutput {
  readonly figures: readonly Omit<LoadResult, 'latency'>[]
  /** One for each of the figures. */
  readonly histograms: readonly Latency[]
}

function parseResults(text: string): LoadResult[] {
  const { figures, histograms } = JSON.parse(text) as BenchOutput
  return figures.map((one, index) => ({ ...one, latency: histograms[index]! }))
}

/** The time in microseconds that a share (0 to 1) of all requests of several loads does not exceed. */
export function percentileOf(loads: readonly Pick<LoadResult, 'latency'>[], share: number): number {
  const all = new Histogram()
  for (const { latency } of loads) all.merge(latency)
  return all.percentile(share)
}

const main = createRequire(import.meta.url)
  .resolve('zabra/package.json')
  .replace('package.json', 'dist/main.js')

interface RunningLoad {
  readonly child: ChildProcess
  readonly results: Promise<LoadResult[]>
  /** Resolves once the load has said something of this form. */
  readonly waitForOutput: (what: RegExp) => Promise<void>
}

function start(servers: string, args: readonly string[]): RunningLoad {
  const argv = [main, 'bench', servers, '--json', '--timeout', '30000', ...args]
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  let heard = (): void => {}
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
    heard()
  })
  const told = new Promise<LoadResult[]>((resolve, reject) =>
    child.once('close', (code) => {
      if (code === 0) resolve(parseResults(out))
      else reject(new Error(`The load ended with ${code}: ${err.trim()}`))
    }),
  )
  const said = (what: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      heard = () => (what.test(err) ? resolve() : undefined)
      heard()
      told.then(() => resolve(), reject)
    })
  return { child, results: told, waitForOutput: said }
}

/** Puts a load on a service, in processes of its own. `args` are those of `zabra bench`. Rejects when a request failed. */
export const load = (servers: string, ...args: readonly string[]): Promise<LoadResult[]> =>
  start(servers, args).results

/** Holds sessions, and watches on them, until `body` is through. It is called with what is there so far. */
export async function holdSessions(
  servers: string,
  { sessions, watches = 0 }: { sessions: number; watches?: number },
  body: { sessionsOpen(): Promise<void> | void; watchesSet(): Promise<void> | void },
): Promise<void> {
  const args = ['-m', 'hold', '-c', String(sessions), '-w', String(watches), '-s', '3600', '--keep']
  const { child, results: told, waitForOutput: said } = start(servers, args)
  try {
    await said(/sessions are open/)
    await body.sessionsOpen()
    await said(/watches are set/)
    await body.watchesSet()
  } finally {
    child.kill('SIGKILL')
    // It was told to end, which is no failure.
    await told.catch(() => {})
  }
}
