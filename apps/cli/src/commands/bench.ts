import { setMaxListeners } from 'node:events'
import { Argument, Option } from 'commander'
import { Histogram } from '../bench/histogram.ts'
import { loads } from '../bench/loads.ts'
import {
  keyPath,
  modes,
  shareOf,
  type Control,
  type Mode,
  type Plan,
  type LoadTarget,
} from '../bench/plan.ts'
import { runCoordinator, runWorker } from '../bench/processes.ts'
import { pump } from '../bench/pump.ts'
import { figureLines, histogramLines } from '../bench/report.ts'
import { figuresOf, histogramOf, mergeResults, type PartResult } from '../bench/result.ts'
import { closeSessions, openSessions } from '../bench/sessions.ts'
import { integer } from '../arguments.ts'
import type { CommandModule, GlobalOptions } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { note, print, printJson, type Io } from '../io.ts'
import { progress } from '../progress.ts'
import { resolveServers } from '../session/address.ts'
import { openSession } from '../session/open.ts'
import type { Client } from '@zabra/client'

interface Flags {
  readonly mode: Mode
  readonly connections: number
  readonly depth: number
  readonly size: number
  readonly keys?: number
  readonly reads: number
  readonly seconds: number
  readonly count: number
  readonly rate: number
  readonly watches: number
  readonly processes: number
  readonly root: string
  readonly keep?: boolean
  readonly worker?: number
}

/** Largest data of a node: servers accept 1 MiB unless jute.maxbuffer is raised. */
const MAX_SIZE = 64 << 20

/** `zabra bench`: generates load on a ZooKeeper-compatible service and prints throughput and latency. */
export const bench: CommandModule = (program, { io, options }) => {
  program
    .command('bench')
    .description('generate load on a service and measure it; creates nodes of its own and removes them')
    .addArgument(new Argument('[servers]', 'the servers, instead of --server'))
    .addOption(new Option('-m, --mode <mode>', modeHelp()).choices(Object.keys(modes)).default('mixed'))
    .option('-c, --connections <n>', 'sessions, spread over the servers', integer(1), 50)
    .option('-d, --depth <n>', 'requests in flight per session', integer(1), 32)
    .option('--size <bytes>', 'data per node', integer(0, MAX_SIZE), 100)
    .option('-k, --keys <n>', 'nodes that are read and written (default: one per connection)', integer(1))
    .option('--reads <percent>', 'share of reads in a mixed load', integer(0, 100), 90)
    .option(
      '-s, --seconds <n>',
      'duration of the measurement, after a warm-up of a quarter of it',
      integer(1),
      10,
    )
    .option('-n, --count <n>', 'nodes per connection in the classic load', integer(1), 10_000)
    .option(
      '-r, --rate <n>',
      'requests per second in total; 0 for as many as the servers answer',
      integer(0),
      0,
    )
    .option('-w, --watches <n>', 'watches per connection in the hold load', integer(0), 0)
    .option('-p, --processes <n>', 'processes that generate the load', integer(1), 1)
    .option('--root <path>', 'parent of the nodes that the load creates', '/')
    .option('--keep', 'do not remove the nodes')
    .addOption(new Option('--worker <index>').argParser(Number).hideHelp())
    .action(async (servers: string | undefined, flags: Flags) => {
      if (flags.mode === 'watch' && flags.connections < 2)
        throw new UsageError('Expected at least 2 connections, one to write and others to watch, got 1.')
      const target = servers === undefined ? options() : { ...options(), server: servers }
      // Every connection adds a listener.
      setMaxListeners(0, io.signal)
      const loadTarget = await targetOf(target, io.signal)
      const processes = Math.min(flags.processes, flags.connections)
      const run = (index: number, plan: Plan, control: Control): Promise<PartResult[]> =>
        loads[plan.mode](shareOf(plan, index, processes), loadTarget, control)
      if (flags.worker !== undefined) return runWorker(run, flags.worker, io.signal)
      const plan = planOf(flags, io)
      await withRoot(io, target, plan, flags.keep === true, async () => {
        await createKeys(plan, loadTarget, io.signal)
        printResults(io, target.json, plan, await measure(io, plan, processes, run))
      })
    })
}

const modeHelp = (): string =>
  Object.entries(modes)
    .map(([mode, what]) => `${mode}: ${what}`)
    .join('; ')

async function targetOf(
  { clientTransport, auth, timeoutMs, server }: GlobalOptions,
  signal: AbortSignal,
): Promise<LoadTarget> {
  const named = clientTransport.withSchemes(server)
  const { servers, chroot } = await resolveServers(named, timeoutMs, signal)
  if (chroot !== '')
    throw new UsageError(`Expected servers without a chroot, got ${chroot}. Give it with --root.`)
  await clientTransport.loadCertificates(named)
  return { servers, open: (to, signal) => clientTransport.transport.open(to, signal), auth, timeoutMs }
}

function planOf({ keys, root, ...flags }: Flags, { platform }: Io): Plan {
  const { mode, connections, depth, size, reads, seconds, count, rate, watches } = flags
  const base = root === '/' ? '' : root
  const suffix = [...platform.random.bytes(4)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return {
    mode,
    root: `${base}/zabra-bench-${suffix}`,
    connections,
    depth,
    size,
    keys: keys ?? connections,
    reads,
    seconds,
    count,
    rate,
    watches,
  }
}

async function measure(
  io: Io,
  plan: Plan,
  processes: number,
  run: (index: number, plan: Plan, control: Control) => Promise<PartResult[]>,
): Promise<PartResult[]> {
  const live = liveCounter(io)
  const control = {
    progress: (operations: number) => live.add(operations),
    note: (line: string) => note(io, line),
    signal: io.signal,
  }
  try {
    if (processes === 1) return await run(0, plan, { ...control, barrier: async (value) => [value] })
    // Workers get the same command line, so that they connect in the same way.
    const args = (index: number): string[] => [...process.argv.slice(2), '--worker', String(index)]
    return mergeResults(await runCoordinator(plan, processes, args, control))
  } finally {
    live.stop()
  }
}

/** Creates the root of a load, runs `body` and removes the root with its descendants, also on failure and on Ctrl-C. */
async function withRoot(
  io: Io,
  options: GlobalOptions,
  { root }: Plan,
  keep: boolean,
  body: () => Promise<void>,
): Promise<void> {
  const zk = await openSession(options, io.signal, (line) => note(io, line))
  try {
    await zk.create(root, { data: null })
    try {
      await body()
    } finally {
      if (keep) note(io, `the nodes of the load are below ${root}`)
      else await removeNodes(io, zk, root)
    }
  } finally {
    await zk.close()
  }
}

async function removeNodes(io: Io, zk: Client, root: string): Promise<void> {
  const bar = progress(io, 'Removing', 'nodes', 1)
  try {
    // Not the signal of the program: Ctrl-C must not prevent the removal. A second Ctrl-C exits.
    const { signal } = new AbortController()
    await zk.delete(root, {
      recursive: true,
      signal,
      batchSize: 500,
      onFound: (nodes) => bar.setTotal(nodes),
      onDeleted: (nodes) => bar.update(nodes),
    })
  } catch (error) {
    note(io, `some nodes below ${root} could not be removed. Run zabra deleteall ${root}`)
    throw error
  } finally {
    bar.stop()
  }
}

/** Creates the nodes that are read and written. */
async function createKeys(plan: Plan, loadTarget: LoadTarget, signal: AbortSignal): Promise<void> {
  const data = new Uint8Array(plan.size).fill(120)
  const sessions = await openSessions(
    loadTarget,
    { first: 0, count: 1, concurrency: 1, data },
    { progress() {}, signal },
  )
  await pump(sessions[0]!, {
    depth: 256,
    latency: new Histogram(),
    what: 'creating a node',
    signal,
    send: (index) => index < plan.keys && (sessions[0]!.create(keyPath(plan, index)), true),
  })
  await closeSessions(sessions)
}

/** Shows the rate and number of operations every second if standard error is a terminal. */
function liveCounter(io: Io): { add(operations: number): void; stop(): void } {
  if (io.stderr.isTTY !== true) return { add() {}, stop() {} }
  let [done, shown] = [0, 0]
  const timer = setInterval(() => {
    const [rate, all] = [done - shown, done].map((count) => count.toLocaleString('en'))
    io.stderr.write(`\r\x1b[K${rate} per second, ${all} so far`)
    shown = done
  }, 1000)
  return {
    add: (operations) => (done += operations),
    stop: () => {
      clearInterval(timer)
      io.stderr.write('\r\x1b[K')
    },
  }
}

function printResults(io: Io, json: boolean, plan: Plan, parts: readonly PartResult[]): void {
  const figures = parts.map(figuresOf)
  const histograms = parts.map(({ name, latency }) => ({ name, ...latency }))
  if (json) return printJson(io, { ...plan, figures, histograms })
  print(io, ...figureLines(figures))
  const [only, ...more] = parts
  if (only !== undefined && more.length === 0) print(io, '', ...histogramLines(histogramOf(only.latency)))
}
