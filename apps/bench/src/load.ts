import { spawn, type ChildProcess } from 'node:child_process'
import { createRequire } from 'node:module'
import { Histogram } from '../../cli/src/bench/histogram.ts'

/** The figures of `zabra bench` for one kind of operation. Times are in microseconds. */
export interface LoadResult {
  readonly name: string
  readonly operations: number
  readonly seconds: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** The latency histogram. */
  readonly latency: Latency
}

type Latency = ReturnType<Histogram['export']>

interface BenchOutput {
  readonly figures: readonly Omit<LoadResult, 'latency'>[]
  /** The latency histogram of each of the figures, in their order. */
  readonly histograms: readonly Latency[]
}

function parseResults(text: string): LoadResult[] {
  const { figures, histograms } = JSON.parse(text) as BenchOutput
  return figures.map((one, index) => ({ ...one, latency: histograms[index]! }))
}

/** Returns a latency percentile in microseconds over all requests of several loads; `share` is between 0 and 1. */
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
  /** Resolves when standard error matches a pattern or the load ends. Rejects when the load fails. */
  readonly waitForOutput: (what: RegExp) => Promise<void>
}

function start(servers: string, args: readonly string[]): RunningLoad {
  const argv = [main, 'bench', servers, '--json', '--timeout', '30000', ...args]
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  let onOutput = (): void => {}
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
    onOutput()
  })
  const results = new Promise<LoadResult[]>((resolve, reject) =>
    child.once('close', (code) => {
      if (code === 0) resolve(parseResults(out))
      else reject(new Error(`The load ended with ${code}: ${err.trim()}`))
    }),
  )
  const waitForOutput = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      onOutput = () => (pattern.test(err) ? resolve() : undefined)
      onOutput()
      results.then(() => resolve(), reject)
    })
  return { child, results, waitForOutput }
}

/** Runs `zabra bench` against a service with these arguments, in processes of its own. Rejects when a request failed. */
export const load = (servers: string, ...args: readonly string[]): Promise<LoadResult[]> =>
  start(servers, args).results

/** Holds idle sessions and their watches open until the callbacks have returned, each called when its part is complete. */
export async function holdSessions(
  servers: string,
  { sessions, watches = 0 }: { sessions: number; watches?: number },
  body: { sessionsOpen(): Promise<void> | void; watchesSet(): Promise<void> | void },
): Promise<void> {
  const args = ['-m', 'hold', '-c', String(sessions), '-w', String(watches), '-s', '3600', '--keep']
  const { child, results, waitForOutput } = start(servers, args)
  try {
    await waitForOutput(/sessions are open/)
    await body.sessionsOpen()
    await waitForOutput(/watches are set/)
    await body.watchesSet()
  } finally {
    child.kill('SIGKILL')
    // The load was killed on purpose.
    await results.catch(() => {})
  }
}
